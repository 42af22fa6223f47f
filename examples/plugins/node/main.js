'use strict';

// An example of a plugin in another language than Go. All it needs is the proto file and the handshake: this program shows
// both, and docs/plugin-authors/contract.md explains each step. The daemon starts it with
//
//   plugin "node" {
//     command = ["node", "/path/of/main.js"]
//     mtls    = false
//   }

const net = require('node:net');
const os = require('node:os');
const path = require('node:path');
const grpc = require('@grpc/grpc-js');
const loader = require('@grpc/proto-loader');
const { faults } = require('./schema.js');
const { tools, configSchema, configure } = require('./tools.js');

// The copy beside this program of pluginsdk/pluginpb/plugin.proto: under isolation a plugin reads its own folder only.
const PROTO = path.join(__dirname, 'plugin.proto');

// 1. The cookie says that a host started this program; a person is told what it is.
if (process.env.HERMESD_PLUGIN !== 'hermes.plugin.v1') {
  console.error('This is a plugin of hermesd: name it in the command of a plugin block, and hermesd starts it.');
  process.exit(1);
}
// 2. A host that wants certificates sends its own. Making one is a burden in Node.js, and this program refuses.
if (process.env.PLUGIN_CLIENT_CERT) {
  console.error('This plugin takes no certificates: write mtls = false in its block.');
  process.exit(1);
}

// 3. Nothing but the handshake line may be printed on stdout.
const print = (line) => process.stdout.write(line + '\n');
console.log = console.info = console.debug = console.error;

// 4. When the host has died the lifeline reaches its end, and the plugin goes.
if (process.env.HERMESD_LIFELINE_FD) {
  const lifeline = new net.Socket({ fd: Number(process.env.HERMESD_LIFELINE_FD), readable: true, writable: false });
  lifeline.on('end', () => process.exit(1)).on('error', () => process.exit(1)).resume();
}
process.on('SIGTERM', () => process.exit(0));

let messageLimit = Number(process.env.HERMESD_MAX_MESSAGE_BYTES) || 16 << 20;
let running = 0;
let draining = false;
let idle = []; // who waits in Drain for the last call's end

const problem = (code, blame, message, pointer = '') => ({ error: { code, blame, message, pointer, retryable: code === 'not_sent' } });

// outcome runs a tool and returns the last event of its stream. An exception costs this call alone.
async function outcome(request, tell, signal) {
  const tool = tools[request.tool];
  if (!tool) return problem('unknown_tool', 'host', `the plugin has no tool ${request.tool}`);
  let args;
  try {
    args = JSON.parse(request.arguments.length > 0 ? request.arguments.toString() : '{}');
  } catch (error) {
    return problem('invalid_arguments', 'caller', `the arguments are no JSON: ${error.message}`);
  }
  const [fault] = faults(tool.input, args);
  if (fault) return problem('invalid_arguments', 'caller', `${fault.path || 'the arguments'}: ${fault.text}`, fault.path);
  try {
    const value = await tool.run(args, tell, signal);
    const text = typeof value === 'string' ? value : JSON.stringify(value);
    return {
      result: {
        content: [Buffer.from(JSON.stringify({ type: 'text', text }))],
        structured: typeof value === 'string' ? Buffer.alloc(0) : Buffer.from(text),
      },
    };
  } catch (error) {
    if (signal.aborted) return problem('cancelled', 'caller', 'the call was cancelled');
    return problem('plugin_panic', 'plugin', `the tool threw: ${error.message}`);
  }
}

// send ends the stream with an outcome. What does not fit into one message goes before it, in pieces.
function send(call, event) {
  if (event.result) {
    const { content, structured } = event.result;
    const size = structured.length + content.reduce((n, block) => n + block.length, 0);
    const most = Number(call.request.maxResultBytes);
    if (most > 0 && size > most) {
      event = problem('result_too_large', 'plugin', `the result has ${size} bytes and the limit is ${most}; ask for less`);
    } else if (size + 4096 > messageLimit) {
      for (const block of content) sendPieces(call, 'PART_CONTENT', block);
      if (structured.length > 0) sendPieces(call, 'PART_STRUCTURED', structured);
      event = { result: {} };
    }
  }
  call.write(event);
  call.end();
}

function sendPieces(call, part, data) {
  const piece = Math.floor(messageLimit / 4);
  for (let at = 0; at < data.length; at += piece) {
    call.write({ chunk: { part, data: data.subarray(at, at + piece), last: at + piece >= data.length } });
  }
}

// 5. The service: every RPC of the contract.
const service = {
  describe: (_call, done) => done(null, {
    name: 'node-words', version: '1.0.0', contractMin: 1, contractMax: 1, license: 'Apache-2.0',
    description: 'Counts words; a plugin in JavaScript.', configSchema: Buffer.from(JSON.stringify(configSchema)),
    build: { sdk: 'none', language: `node ${process.version}` },
  }),

  configure(call, done) {
    if (call.request.maxMessageBytes > 0) messageLimit = call.request.maxMessageBytes;
    const config = JSON.parse(call.request.config.length > 0 ? call.request.config.toString() : '{}');
    const diagnostics = faults(configSchema, config).map(({ path, text }) => ({ severity: 'SEVERITY_ERROR', path, summary: text }));
    if (diagnostics.length === 0) configure(config);
    done(null, { diagnostics });
  },

  listTools(call) {
    const list = Object.entries(tools).map(([name, tool]) => ({
      name, toolset: 'words', description: tool.description,
      inputSchema: Buffer.from(JSON.stringify(tool.input)),
      outputSchema: tool.output ? Buffer.from(JSON.stringify(tool.output)) : Buffer.alloc(0),
      annotations: { readOnly: true, openWorld: false, parallelSafe: true },
      examples: tool.examples.map((example) => Buffer.from(JSON.stringify(example))),
    }));
    call.write({ tools: list });
    call.end();
  },

  watch(call) {
    call.sendMetadata(new grpc.Metadata()); // from here on the host misses nothing
    call.on('cancelled', () => call.end());
  },

  checkAvailability(call, done) {
    const { tools: names, toolsets } = call.request;
    const asked = Object.keys(tools).filter((name) => names.length + toolsets.length === 0 || names.includes(name) || toolsets.includes('words'));
    const answer = Object.fromEntries(names.map((name) => [name, { available: false, reason: 'the plugin has no such tool' }]));
    for (const name of asked) answer[name] = { available: true };
    done(null, { tools: answer });
  },

  async invoke(call) {
    if (draining) {
      return send(call, problem('not_sent', 'host', 'the plugin is draining and did not run the call; calling again is safe'));
    }
    running++;
    const abort = new AbortController();
    call.on('cancelled', () => abort.abort());
    const tell = (done, total, note) => call.write({ progress: { done, total, note } });
    const event = await outcome(call.request, tell, abort.signal);
    running--;
    send(call, event);
    if (running === 0) idle.splice(0).forEach((done) => done());
  },

  answer: (_call, done) => done(null, {}), // this plugin asks nothing of the host

  drain(_call, done) {
    draining = true;
    if (running === 0) return done(null, {});
    idle.push(() => done(null, {}));
  },

  health: (_call, done) => done(null, { runningCalls: running, draining }),
};

// 6. gRPC's own health service answers that "plugin" is serving; its message has one field, status = SERVING.
const healthService = {
  Check: {
    path: '/grpc.health.v1.Health/Check', requestStream: false, responseStream: false,
    requestSerialize: (b) => b, requestDeserialize: (b) => b, responseSerialize: (b) => b, responseDeserialize: (b) => b,
  },
};

const definition = loader.loadSync(PROTO, { longs: Number, enums: String, defaults: true, oneofs: true });
const server = new grpc.Server({ 'grpc.max_receive_message_length': messageLimit, 'grpc.max_send_message_length': -1 });
server.addService(definition['hermes.plugin.v1.Plugin'], service);
server.addService(healthService, { Check: (_call, done) => done(null, Buffer.from([0x08, 0x01])) });

// 7. A socket in the folder that the host names, and the handshake line that says where it is.
const socket = path.join(process.env.PLUGIN_UNIX_SOCKET_DIR || os.tmpdir(), `plugin-${process.pid}`);
server.bindAsync(`unix:${socket}`, grpc.ServerCredentials.createInsecure(), (error) => {
  if (error) {
    console.error(`the socket ${socket} cannot be made: ${error.message}`);
    process.exit(1);
  }
  print(`1|1|unix|${socket}|grpc|`);
});
