// Configuration files, parsed as the command parses them.
import type { GatewayFile } from '../../../src/config/file/gateway-file.ts';
import { parseGatewayFile } from '../../../src/config/file/parse-gateway-file.ts';
import type { ParseOptions } from '../../../src/config/file/parse-options.ts';

/** JSON from the text, or from the value that it spells. */
export function parseFile(content: unknown, options: Partial<ParseOptions> = {}) {
  const text = typeof content === 'string' ? content : JSON.stringify(content, null, 2);
  return parseGatewayFile(text, {
    fileName: 'mcp.json',
    format: 'json',
    env: {},
    hasRedis: false,
    hasStateSecret: false,
    runProgramsAs: undefined,
    findProgramUser: async () => ({ kind: 'problem', message: 'There are no users here.' }),
    resolvePath: (path) => `/etc/postern/${path}`,
    readText(path) {
      throw new Error(`there is no ${path}`);
    },
    ...options,
  });
}

export async function readFile(
  content: unknown,
  options: Partial<ParseOptions> = {},
): Promise<GatewayFile> {
  const parsed = await parseFile(content, options);
  if (parsed.kind === 'problems') throw new Error(parsed.problems.join('\n'));
  return parsed.file;
}

/** Of one server that is called `it`. */
export async function readServer(server: object, options: Partial<ParseOptions> = {}) {
  const { servers } = await readFile({ mcpServers: { it: server } }, options);
  return servers[0];
}

export async function findProblems(
  content: unknown,
  options: Partial<ParseOptions> = {},
): Promise<readonly string[]> {
  const parsed = await parseFile(content, options);
  return parsed.kind === 'problems' ? parsed.problems : [];
}

/** What is wrong with one server that is called `it`, each without file, line and the server's path. */
export async function findServerProblems(
  server: unknown,
  options: Partial<ParseOptions> = {},
): Promise<readonly string[]> {
  const problems = await findProblems({ mcpServers: { it: server } }, options);
  return problems.map((problem) => problem.replace(/^mcp\.json:\d+: mcpServers\.it[.:]? ?/, ''));
}
