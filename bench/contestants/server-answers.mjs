// What the server behind the gateway answers: what the gateway's own tool would, and results of several sizes.
// ERA=session or stateless; TOOLS says how many tools it lists.
const { ERA, TOOLS = '1' } = process.env;

export const isStateless = ERA === 'stateless';
const serverInfo = { name: 'bare', version: '1' };
const meta = { 'io.modelcontextprotocol/serverInfo': serverInfo };
const completed = isStateless ? { resultType: 'complete', _meta: meta } : {};
const cached = isStateless ? { ttlMs: 3_600_000, cacheScope: 'public' } : {};
const inputSchema = { type: 'object', properties: { message: { type: 'string' } } };

/** By the name of the tool; the result of a `_stream` is an event of a stream. */
const texts = {
  service_ping: 'Postern MCP Server: hello',
  small: fill(1000),
  small_stream: fill(1000),
  large: fill(100_000),
  large_stream: fill(100_000),
};
/** Made when first called. With its escapes, the longest is about as long as the gateway takes by default. */
const LONG = { huge: 1_000_000, huge_stream: 1_000_000, giant: 7_800_000, giant_stream: 7_800_000 };
const names = [...Object.keys(texts), ...Object.keys(LONG)];
while (names.length < Number(TOOLS)) names.push(`tool_${names.length}`);
const tools = names
  .slice(0, Math.max(1, Number(TOOLS)))
  .map((name) => ({ name, description: `Does ${name}.`, inputSchema }));

/** Lines as tools return them: some escapes in each, as JSON sees it. */
function fill(length) {
  let text = '';
  for (let n = 0; text.length < length; n += 1) {
    text += `${n}: "src/file-${n}.ts" has 12 matches of the pattern that was asked for\n`;
  }
  return text.slice(0, length);
}

const render = (content) => JSON.stringify({ ...completed, content });
const calls = new Map(
  Object.entries(texts).map(([name, text]) => [name, render([{ type: 'text', text }])]),
);
function findResult(name) {
  if (!calls.has(name) && LONG[name] !== undefined)
    calls.set(name, render([{ type: 'text', text: fill(LONG[name]) }]));
  return calls.get(name);
}

const results = {
  ...(isStateless
    ? {
        'server/discover': {
          ...completed,
          ...cached,
          supportedVersions: ['2026-07-28'],
          capabilities: { tools: {} },
        },
      }
    : {
        initialize: { protocolVersion: '2025-11-25', capabilities: { tools: {} }, serverInfo },
        ping: {},
      }),
  'tools/list': { ...completed, ...cached, tools },
};
const bodies = new Map(
  Object.entries(results).map(([method, result]) => [method, JSON.stringify(result)]),
);
const notFound = JSON.stringify({ code: -32601, message: 'Method not found' });

/** The answer to a request; undefined for a notification. */
export function answer({ id, method, params }) {
  if (id === undefined) return undefined;
  const result = method === 'tools/call' ? findResult(params.name) : bodies.get(method);
  const outcome = result === undefined ? `"error":${notFound}` : `"result":${result}`;
  return {
    isKnown: result !== undefined,
    isStream: method === 'tools/call' && params.name.endsWith('_stream'),
    // Number of progress events before the answer.
    events: params?.arguments?.events ?? 0,
    body: `{"jsonrpc":"2.0","id":${JSON.stringify(id)},${outcome}}`,
  };
}
