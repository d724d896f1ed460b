// Catalogues in files, for postern --catalog, and calls of their tools.
import { writeFile } from 'node:fs/promises';
import { join } from 'node:path';
import { statelessRequest } from '../clients/stateless.ts';

/** A catalogue with one tool that says `text`, as a module. */
export const catalogModule = (text: string): string => `
import { createLocalCatalog, defineTool, requireUser } from 'postern/define';

const inputSchema = { type: 'object', additionalProperties: false };
const say = defineTool({
  name: 'say',
  description: 'Says it.',
  inputSchema,
  run: () => ({ content: [{ type: 'text', text: ${JSON.stringify(text)} }] }),
});
const me = defineTool({
  name: 'me',
  description: 'Says who calls.',
  inputSchema,
  run: (_args, context) => ({ content: [{ type: 'text', text: requireUser(context).sub }] }),
});
export default createLocalCatalog({ tools: [say, me] });
`;

/** Writes a file into a folder; resolves to its name. */
export async function writeFileIn(folder: string, name: string, text: string): Promise<string> {
  await writeFile(join(folder, name), text);
  return name;
}

/** tools/call without arguments: the text that the tool answers, or its error. */
export async function callTool(url: string, name: string, token?: string): Promise<unknown> {
  const { message, headers } = statelessRequest('tools/call', { name, arguments: {} });
  const answer = await fetch(`${url}/mcp`, {
    method: 'POST',
    headers: {
      'content-type': 'application/json',
      ...headers,
      ...(token !== undefined && { authorization: `Bearer ${token}` }),
    },
    body: JSON.stringify(message),
  });
  const { result, error } = JSON.parse(await answer.text());
  return result?.content[0]?.text ?? error;
}
