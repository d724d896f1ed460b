// What a relayed call is compared with, besides a tool that asks nobody: a tool of the gateway's own that asks the
// same server itself, by undici and nothing else.
import { createLocalCatalog, defineTool } from 'postern/define';
import { Pool } from 'undici';

const url = new URL(process.env.UPSTREAM_URL);
const pool = new Pool(url.origin, { headersTimeout: 0, bodyTimeout: 0 });
const headers = [
  ...['content-type', 'application/json', 'accept', 'application/json, text/event-stream'],
  ...['mcp-protocol-version', '2026-07-28', 'mcp-method', 'tools/call', 'mcp-name', 'service_ping'],
];
const _meta = {
  'io.modelcontextprotocol/protocolVersion': '2026-07-28',
  'io.modelcontextprotocol/clientInfo': { name: 'bench', version: '1' },
  'io.modelcontextprotocol/clientCapabilities': {},
};

function ask(params) {
  const body = JSON.stringify({ jsonrpc: '2.0', id: 1, method: 'tools/call', params });
  return new Promise((resolve, reject) => {
    const chunks = [];
    pool.dispatch(
      { path: url.pathname, method: 'POST', headers, body },
      {
        onRequestStart() {},
        onResponseStart() {},
        onResponseData: (_controller, chunk) => void chunks.push(chunk),
        onResponseEnd: () => resolve(JSON.parse(Buffer.concat(chunks).toString())),
        onResponseError: (_controller, error) => reject(error),
      },
    );
  });
}

const servicePing = defineTool({
  name: 'service_ping',
  description: 'Asks the server.',
  inputSchema: { type: 'object', properties: { message: { type: 'string' } } },
  async run(args) {
    const { result } = await ask({ name: 'service_ping', arguments: args, _meta });
    return { content: result.content };
  },
});

export default createLocalCatalog({ tools: [servicePing] });
