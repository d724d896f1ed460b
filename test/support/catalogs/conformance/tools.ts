// Tools that need nothing of the client.
import { setTimeout as pause } from 'node:timers/promises';
import { defineTool } from '../../../../src/index.ts';
import { image, NO_ARGUMENTS, said, text, WAV } from './content.ts';

/** Milliseconds between two steps of a tool that works in steps. */
const STEP_MS = 50;

const simpleText = defineTool({
  name: 'test_simple_text',
  description: 'Answers with one text.',
  inputSchema: NO_ARGUMENTS,
  run: () => said('This is a simple text response for testing.'),
});

const imageContent = defineTool({
  name: 'test_image_content',
  description: 'Answers with an image.',
  inputSchema: NO_ARGUMENTS,
  run: () => ({ content: [image] }),
});

const audioContent = defineTool({
  name: 'test_audio_content',
  description: 'Answers with a sound.',
  inputSchema: NO_ARGUMENTS,
  run: () => ({ content: [{ type: 'audio', data: WAV, mimeType: 'audio/wav' }] }),
});

const embeddedResource = defineTool({
  name: 'test_embedded_resource',
  description: 'Answers with a resource.',
  inputSchema: NO_ARGUMENTS,
  run: () => ({
    content: [
      {
        type: 'resource',
        resource: {
          uri: 'test://embedded-resource',
          mimeType: 'text/plain',
          text: 'This is an embedded resource content.',
        },
      },
    ],
  }),
});

const multipleContentTypes = defineTool({
  name: 'test_multiple_content_types',
  description: 'Answers with a text, an image and a resource.',
  inputSchema: NO_ARGUMENTS,
  run: () => ({
    content: [
      text('Multiple content types test:'),
      image,
      {
        type: 'resource',
        resource: {
          uri: 'test://mixed-content-resource',
          mimeType: 'application/json',
          text: JSON.stringify({ test: 'data', value: 123 }),
        },
      },
    ],
  }),
});

const errorHandling = defineTool({
  name: 'test_error_handling',
  description: 'Fails.',
  inputSchema: NO_ARGUMENTS,
  run: () => ({ ...said('This tool intentionally returns an error for testing'), isError: true }),
});

const withProgress = defineTool({
  name: 'test_tool_with_progress',
  description: 'Tells its progress in three steps.',
  inputSchema: NO_ARGUMENTS,
  async run(_args, { progress, signal }) {
    progress(0, 100);
    await pause(STEP_MS, undefined, { signal });
    progress(50, 100);
    await pause(STEP_MS, undefined, { signal });
    progress(100, 100);
    return said('Worked in three steps.');
  },
});

const withLogging = defineTool({
  name: 'test_tool_with_logging',
  description: 'Writes three messages to the client.',
  inputSchema: NO_ARGUMENTS,
  async run(_args, { log, signal }) {
    log('info', 'Tool execution started');
    await pause(STEP_MS, undefined, { signal });
    log('info', 'Tool processing data');
    await pause(STEP_MS, undefined, { signal });
    log('info', 'Tool execution completed');
    return said('Wrote three messages.');
  },
});

const logging = defineTool({
  name: 'test_logging_tool',
  description: 'Writes messages of several severities, for clients that want them.',
  inputSchema: NO_ARGUMENTS,
  run(_args, { log }) {
    log('debug', 'A message for debugging');
    log('info', 'A message for information');
    log('error', 'A message of an error');
    return said('Wrote to those who listen.');
  },
});

const reconnection = defineTool({
  name: 'test_reconnection',
  description: 'Ends the connection while it works: the client comes back for the result.',
  inputSchema: NO_ARGUMENTS,
  async run(_args, { signal, disconnect }) {
    disconnect();
    await pause(STEP_MS, undefined, { signal });
    return said('You came back for this.');
  },
});

const jsonSchema202012 = defineTool({
  name: 'json_schema_2020_12_tool',
  description: 'Tool with JSON Schema 2020-12 features',
  inputSchema: {
    $schema: 'https://json-schema.org/draft/2020-12/schema',
    type: 'object',
    $defs: {
      address: {
        $anchor: 'addressDef',
        type: 'object',
        properties: { street: { type: 'string' }, city: { type: 'string' } },
      },
    },
    properties: {
      name: { type: 'string' },
      address: { $ref: '#/$defs/address' },
      contactMethod: { type: 'string', enum: ['phone', 'email'] },
      phone: { type: 'string' },
      email: { type: 'string' },
    },
    allOf: [{ anyOf: [{ required: ['phone'] }, { required: ['email'] }] }],
    if: { properties: { contactMethod: { const: 'phone' } }, required: ['contactMethod'] },
    // biome-ignore lint/suspicious/noThenProperty: the keyword of JSON Schema
    then: { required: ['phone'] },
    else: { required: ['email'] },
    additionalProperties: false,
  },
  run: (args) => said(`Fits: ${JSON.stringify(args)}`),
});

const customHeader = defineTool({
  name: 'test_custom_header',
  description: 'Takes an argument that clients repeat in a header.',
  inputSchema: {
    type: 'object',
    properties: { region: { type: 'string', 'x-mcp-header': 'Region' } },
    additionalProperties: false,
  },
  run: ({ region = 'nowhere' }) => said(`Region: ${region}`),
});

/** The first one is called with no arguments by whoever looks for any tool. */
export const tools = [
  simpleText,
  imageContent,
  audioContent,
  embeddedResource,
  multipleContentTypes,
  errorHandling,
  withProgress,
  withLogging,
  logging,
  reconnection,
  jsonSchema202012,
  customHeader,
];
