// Takes the servers of a desktop client's file over into postern.yaml, and their secrets into `.env`.
import { extname } from 'node:path';
import { type FileNode, readSyntax } from '../../config/file/syntax/read-syntax.ts';
import { deriveServerName } from '../../mcp/upstream/server-names.ts';
import { escapeInvisible } from '../../platform/invisible.ts';
import { isObject, type JsonObject } from '../../platform/json.ts';
import {
  ALLOWED_SERVER_NAME,
  describeSameName,
  isOtherName,
} from '../../servers/config/servers.ts';
import { CommandError } from '../command-line/errors.ts';
import { readTextFile } from '../command-line/read-input.ts';
import { alignColumns } from '../command-line/terminal.ts';
import {
  convertServerJson,
  isServerJson,
  readServerJsonName,
  ServerJsonError,
} from './import-server-json.ts';
import { createSecretMover, type MovedSecret } from './move-secrets.ts';

export interface ImportedServers {
  /** Servers by the names that they have here, without secrets. */
  readonly servers: JsonObject;
  /** Secrets by the variables that stand in their place. */
  readonly secrets: Readonly<Record<string, string>>;
  /** Changes: what was moved, renamed and left, in the order of the file. */
  readonly changes: readonly MovedSecret[];
}

export const NO_SERVERS: ImportedServers = { servers: {}, secrets: {}, changes: [] };

const RENAMED_BECAUSE = 'A name here is a letter, then up to 31 letters, digits and hyphens.';

/** VS Code names them otherwise. */
const MEMBERS = ['mcpServers', 'servers'];

/** @throws CommandError for a file without servers, or with names that the gateway could not take. */
export function importServers(path: string): ImportedServers {
  const content = read(path);
  if (isServerJson(content)) return importServerJson(path, content);
  const given = MEMBERS.map((name) => content[name]).find(isObject);
  if (given === undefined)
    throw refuse([
      `${path} has no "mcpServers": an object with MCP servers by their names. Nor is it a server.json, with "name" and "remotes" or "packages".`,
    ]);
  const names = nameServers(path, Object.keys(given));
  const { moveSecrets, secrets, changes } = createSecretMover();
  const servers: Record<string, unknown> = {};
  for (const [name, givenName] of names) {
    const note = (member: string, what: string) => changes.push({ server: name, member, what });
    if (isOtherName(givenName, name))
      note('name', `renamed: it was ${givenName}. ${RENAMED_BECAUSE}`);
    const server = given[givenName];
    if (isObject(server) && server.disabled === true)
      note(
        'disabled',
        'left: its tools are not offered until you remove "disabled" from postern.yaml',
      );
    servers[name] = isObject(server) ? moveSecrets(name, server) : server;
  }
  return { servers, secrets, changes };
}

/** @throws CommandError for a server that cannot be taken over. */
function importServerJson(path: string, content: JsonObject): ImportedServers {
  const [name = ''] = nameServers(path, [readServerJsonName(content)]).keys();
  try {
    const { server, changes } = convertServerJson(name, content);
    return { servers: { [name]: server }, secrets: {}, changes };
  } catch (error) {
    if (error instanceof ServerJsonError) throw refuse([`${path}: ${error.message}`]);
    throw error;
  }
}

/** By their names here those that they were given. */
function nameServers(path: string, givenNames: readonly string[]): ReadonlyMap<string, string> {
  const names = new Map<string, string>();
  const problems = givenNames.flatMap((given) => {
    const name = deriveServerName(given);
    if (name === undefined)
      return [`${path}: ${JSON.stringify(given)} is no name of a server. ${ALLOWED_SERVER_NAME}`];
    const earlier = names.get(name);
    if (earlier !== undefined)
      return [`${path}: ${describeSameName(name, { earlier, later: given })}`];
    names.set(name, given);
    return [];
  });
  if (problems.length > 0) throw refuse(problems);
  return names;
}

function read(path: string): JsonObject {
  const format = /^\.ya?ml$/i.test(extname(path)) ? 'yaml' : 'json';
  if (/^https?:\/\//i.test(path)) {
    throw refuse([
      `--servers takes a file, not an address. Fetch it first: curl -o server.json ${path}`,
    ]);
  }
  const content = readTextFile(path, (error) => {
    throw refuse([`--servers: ${path} cannot be read (${String(error)}).`]);
  });
  const result = readSyntax(content, format);
  if (result.kind === 'broken') throw refuse([`${path}:${result.line}: ${result.message}`]);
  const value = toValue(result.root);
  return isObject(value) ? value : {};
}

const refuse = (lines: readonly string[]) => new CommandError('Nothing was written:', lines);

function toValue(node: FileNode): unknown {
  if (node.kind === 'scalar') return node.value;
  if (node.kind === 'list') return node.items.map(toValue);
  return Object.fromEntries(node.members.map(({ name, value }) => [name, toValue(value)]));
}

/** A table of what was moved, renamed and left, with an empty line behind it. */
export function describeImport(path: string, changes: readonly MovedSecret[]): string {
  const rows = changes.map(({ server, member, what }) =>
    // Names come from a file that somebody else may have written.
    [server, member, what].map((text) => escapeInvisible(text.replaceAll('\n', '\\n'))),
  );
  const lines = alignColumns(rows).map((line) => `  ${line}\n`);
  return `From ${path}:\n${lines.join('')}`;
}
