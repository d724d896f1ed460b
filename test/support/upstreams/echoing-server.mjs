// A server that tells in its result, to the letter, which message it got, and has in `structuredContent` what its caller wants.
// By itself it is one of the session era on stdio; `answer` is the same for servers over HTTP.
import { createInterface } from 'node:readline';
import { fileURLToPath } from 'node:url';

const INFO = { serverInfo: { name: 'echo', version: '1' }, capabilities: { tools: {} } };
const TOOL = { name: 'echo', inputSchema: { type: 'object' } };

/** The response to a message, as text; undefined where it has none. `era` is `session` or `stateless`. */
export function answer(text, era = 'session') {
  const { id, method, params } = JSON.parse(text);
  if (id === undefined) return undefined;
  const respond = (result) => `{"jsonrpc":"2.0","id":${JSON.stringify(id)},"result":${result}}`;
  const refuse = `{"jsonrpc":"2.0","id":${JSON.stringify(id)},"error":{"code":-32601,"message":"No"}}`;
  const complete = era === 'stateless' ? '"resultType":"complete",' : '';
  switch (method) {
    case 'initialize':
      return respond(JSON.stringify({ protocolVersion: '2025-11-25', ...INFO }));
    case 'server/discover':
      return era === 'stateless'
        ? respond(JSON.stringify({ supportedVersions: ['2026-07-28'], ...INFO }))
        : refuse;
    case 'tools/list':
      return respond(`{${complete}"tools":[${JSON.stringify(TOOL)}]}`);
    case 'tools/call': {
      const got = JSON.stringify([{ type: 'text', text }]);
      return respond(
        `{${complete}"content":${got}, "structuredContent":{"value":${params.arguments.back}}}`,
      );
    }
    default:
      return refuse;
  }
}

if (process.argv[1] === fileURLToPath(import.meta.url)) {
  createInterface({ input: process.stdin }).on('line', (line) => {
    const response = answer(line);
    if (response !== undefined) process.stdout.write(`${response.replace(/[\r\n]/g, ' ')}\n`);
  });
}
