'use strict';

// faults checks a value against the part of JSON Schema that this plugin's schemas use: flat objects of strings and
// integers. A bigger plugin takes a validator from npm.
exports.faults = (schema, value) => {
  if (value === null || typeof value !== 'object' || Array.isArray(value)) {
    return [{ path: '', text: 'must be a JSON object' }];
  }
  const list = [];
  const fault = (name, text) => list.push({ path: '/' + name.replaceAll('~', '~0').replaceAll('/', '~1'), text });
  for (const name of schema.required ?? []) {
    if (!Object.hasOwn(value, name)) fault(name, 'is required');
  }
  for (const [name, given] of Object.entries(value)) {
    const rule = Object.hasOwn(schema.properties, name) ? schema.properties[name] : undefined;
    if (!rule) fault(name, 'is not known');
    else if (rule.type === 'integer' ? !Number.isInteger(given) : typeof given !== rule.type) fault(name, `must be of type ${rule.type}`);
    else if (rule.minimum !== undefined && given < rule.minimum) fault(name, `must be at least ${rule.minimum}`);
    else if (rule.maximum !== undefined && given > rule.maximum) fault(name, `must be at most ${rule.maximum}`);
    else if (rule.maxLength !== undefined && [...given].length > rule.maxLength) fault(name, `must have at most ${rule.maxLength} characters`);
    else if (rule.minLength !== undefined && [...given].length < rule.minLength) fault(name, `must have at least ${rule.minLength} characters`);
  }
  return list;
};
