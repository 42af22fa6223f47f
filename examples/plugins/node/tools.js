'use strict';

const { setTimeout: sleep } = require('node:timers/promises');

let separator = ' ';

exports.configSchema = {
  type: 'object',
  properties: { separator: { type: 'string', description: 'what stands between words', minLength: 1, maxLength: 3, default: ' ' } },
  additionalProperties: false,
};

exports.configure = (config) => { separator = config.separator ?? ' '; };

exports.tools = {
  count_words: {
    description: 'Count the words and the characters of a text.',
    input: {
      type: 'object', required: ['text'], additionalProperties: false,
      properties: { text: { type: 'string', description: 'the text', maxLength: 1000000 } },
    },
    output: {
      type: 'object', required: ['words', 'characters'],
      properties: { words: { type: 'integer' }, characters: { type: 'integer' } },
    },
    examples: [{ text: 'to be or not to be' }],
    run: ({ text }) => ({ words: text.split(separator).filter((word) => word.trim() !== '').length, characters: [...text].length }),
  },

  repeat_text: {
    description: 'Repeat a text.',
    input: {
      type: 'object', required: ['text', 'times'], additionalProperties: false,
      properties: { text: { type: 'string', maxLength: 1000 }, times: { type: 'integer', minimum: 1, maximum: 10000 } },
    },
    examples: [{ text: 'again and ', times: 10000 }],
    run: ({ text, times }) => text.repeat(times),
  },

  nap: {
    description: 'Wait for some seconds.',
    input: {
      type: 'object', required: ['seconds'], additionalProperties: false,
      properties: { seconds: { type: 'integer', minimum: 1, maximum: 3600 } },
    },
    examples: [],
    async run({ seconds }, tell, signal) {
      for (let n = 0; n < seconds; n++) {
        tell(n, seconds, 'napping');
        await sleep(1000, undefined, { signal });
      }
      return 'rested';
    },
  },
};
