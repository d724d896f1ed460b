// Configuration files, parsed as the command parses them.
import { resolve } from 'node:path';
import { loadConfig } from '../../../src/config/load.ts';
import { formatProblem } from '../../../src/config/problem.ts';
import {
  type FileSource,
  type ParsedFile,
  parseGatewayFile,
} from '../../../src/gateway/configuration/gateway-file.ts';

/** What tests say of the settings, and of what the file names. */
export interface FileOptions
  extends Partial<Pick<FileSource, 'fileName' | 'format' | 'env' | 'readText'>> {
  /** Whether `REDIS_URL` is set. */
  readonly hasRedis?: boolean;
  /** Whether `OAUTH_STATE_SECRET` is set. */
  readonly hasStateSecret?: boolean;
  /** `POSTERN_CATALOG`. */
  readonly catalogFile?: string;
}

const toSettings = ({ hasRedis, hasStateSecret, catalogFile }: FileOptions) =>
  loadConfig({
    AUTH_REQUIRED: 'false',
    ...(hasRedis && { REDIS_URL: 'redis://localhost' }),
    ...(hasStateSecret && { OAUTH_STATE_SECRET: 'one-secret-of-more-than-32-characters' }),
    ...(catalogFile && { POSTERN_CATALOG: catalogFile }),
  });

/** JSON from the text, or from the value that it spells. */
export async function parseFile(content: unknown, options: FileOptions = {}) {
  const text = typeof content === 'string' ? content : JSON.stringify(content, null, 2);
  const parsed = await parseGatewayFile(text, {
    fileName: 'mcp.json',
    format: 'json',
    env: {},
    config: toSettings(options),
    findProgramUser: async () => ({ kind: 'problem', message: 'There are no users here.' }),
    resolvePath: (path) => resolve('/etc/postern', path),
    readText(path) {
      throw new Error(`there is no ${path}`);
    },
    ...options,
  });
  return parsed.kind === 'problems'
    ? { ...parsed, problems: parsed.problems.map(formatProblem) }
    : parsed;
}

export async function readFile(content: unknown, options: FileOptions = {}): Promise<ParsedFile> {
  const parsed = await parseFile(content, options);
  if (parsed.kind === 'problems') throw new Error(parsed.problems.join('\n'));
  return parsed.file;
}

/** Of one server that is called `it`. */
export async function readServer(server: object, options: FileOptions = {}) {
  const { servers } = await readFile({ mcpServers: { it: server } }, options);
  return servers[0];
}

export async function findProblems(
  content: unknown,
  options: FileOptions = {},
): Promise<readonly string[]> {
  const parsed = await parseFile(content, options);
  return parsed.kind === 'problems' ? parsed.problems : [];
}

/** What is wrong with one server that is called `it`, each without file, line and the server's path. */
export async function findServerProblems(
  server: unknown,
  options: FileOptions = {},
): Promise<readonly string[]> {
  const problems = await findProblems({ mcpServers: { it: server } }, options);
  return problems.map((problem) => problem.replace(/^mcp\.json:\d+: mcpServers\.it[.:]? ?/, ''));
}
