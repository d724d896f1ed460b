// What a server that means harm might list and answer: whoever shows it must neither run it nor break.
import { type Catalog, createLocalCatalog, defineTool } from '../../../src/index.ts';

/** Sets `window.wasRun` where it is taken for HTML. */
export const MARKUP =
  '<img src=x onerror="window.wasRun = true"><script>window.wasRun = true</script>';
export const SCRIPT_URL = 'javascript:window.wasRun=true';

const SVG = `<svg xmlns="http://www.w3.org/2000/svg" width="9" height="9" onload="parent.wasRun=true"><script>parent.wasRun=true</script></svg>`;
const NODE = { type: 'object', properties: { next: { $ref: '#/$defs/node' } } };

/** As JSON, in which such a member is one like any other. */
const WITH_PROTO = JSON.parse(
  '{"type":"object","properties":{"__proto__":{"type":"string"},"constructor":{"type":"string"},"toString":{"type":"number"}},"required":["__proto__"]}',
);

/** Every member may be the whole again, six at a time. */
const BRANCHING = {
  type: 'object',
  properties: Object.fromEntries(
    Array.from({ length: 12 }, (_, at) => [`branch_${at}`, { $ref: '#' }]),
  ),
};

const SCHEMAS: Readonly<Record<string, unknown>> = {
  markup: {
    type: 'object',
    title: MARKUP,
    properties: {
      [MARKUP]: { type: 'string', title: MARKUP, description: MARKUP, default: MARKUP },
    },
  },
  proto: WITH_PROTO,
  recursive: { ...NODE, $defs: { node: NODE } },
  branching: BRANCHING,
  endless: { type: 'object', properties: { self: { $ref: '#/properties/self' } } },
  broken_pointer: {
    type: 'object',
    properties: { at: { $ref: '#/%E0%A4%A' }, out: { $ref: '#/constructor/prototype' } },
  },
  odd_words: {
    type: 'object',
    properties: {
      kind: { type: 'constructor' },
      format: { type: 'string', format: { toString: 1 } },
      choice: { enum: [{ toString: 1 }, null, ['a']], enumNames: [{ valueOf: 1 }] },
      titled: { oneOf: [{ const: 1, title: { toString: null } }] },
      list: { type: 'array', items: 'no schema' },
    },
    required: 'all',
  },
  huge: {
    type: 'object',
    properties: Object.fromEntries(
      Array.from({ length: 5000 }, (_, at) => [`member_${at}`, { type: 'string' }]),
    ),
  },
  no_schema: 'none',
};

export const HOSTILE_TOOLS = Object.keys(SCHEMAS);

const LARGE = 'x'.repeat(10_000_000);

const CONTENT: readonly unknown[] = [
  { type: 'text', text: MARKUP },
  { type: 'resource_link', uri: SCRIPT_URL, name: MARKUP, description: MARKUP },
  { type: 'resource', resource: { uri: SCRIPT_URL, mimeType: 'text/html', text: MARKUP } },
  { type: 'image', mimeType: 'image/svg+xml', data: Buffer.from(SVG).toString('base64') },
  { type: 'image', mimeType: 'text/html', data: Buffer.from(MARKUP).toString('base64') },
  { type: 'image', mimeType: 'image/png" onerror="window.wasRun=true', data: 'AAAA' },
  { type: MARKUP, [MARKUP]: MARKUP },
  { type: 'text', text: { not: 'text' } },
  null,
  ['a list'],
];

/** Each answers the same; `huge` with ten megabytes. */
export function createHostileCatalog(): Catalog {
  const local = createLocalCatalog({
    tools: [
      defineTool({
        name: 'placeholder',
        description: 'Makes this a catalogue with tools.',
        inputSchema: { type: 'object' },
        run: () => ({ content: [] }),
      }),
    ],
  });
  return {
    ...local,
    listTools: async () => ({
      items: HOSTILE_TOOLS.map((name) => ({
        name,
        title: `${name} ${MARKUP}`,
        description: `${MARKUP} [a link](${SCRIPT_URL})`,
        annotations: { title: MARKUP, readOnlyHint: MARKUP },
        inputSchema: SCHEMAS[name],
      })),
    }),
    callTool: async (name) => ({
      content: name === 'huge' ? [{ type: 'text', text: LARGE }] : CONTENT,
      structuredContent: JSON.parse(
        `{"__proto__":{"wasRun":true},"text":${JSON.stringify(MARKUP)}}`,
      ),
    }),
  };
}
