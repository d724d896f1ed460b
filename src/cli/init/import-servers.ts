// Takes the servers of a desktop client's file over into postern.yaml, and their secrets into `.env`.
import { readFileSync } from 'node:fs';
import { extname } from 'node:path';
import { SETTINGS } from '../../core/config/settings.ts';
import type { FileNode } from '../../core/gateway-file/syntax/file-node.ts';
import { readSyntax } from '../../core/gateway-file/syntax/read-syntax.ts';
import { isObject, type JsonObject } from '../../core/json.ts';
import { isSecretName } from '../../core/secret-texts.ts';
import { CommandError } from '../command-error.ts';
import { renderEnvLine } from './env-line.ts';

export interface ImportedServers {
  /** By their names, as the file has them, without secrets. */
  readonly servers: JsonObject;
  /** By the variables that stand in their place. */
  readonly secrets: Readonly<Record<string, string>>;
}

export const NO_SERVERS: ImportedServers = { servers: {}, secrets: {} };

/** VS Code names them otherwise. */
const MEMBERS = ['mcpServers', 'servers'];

/** @throws CommandError for a file without servers. */
export function importServers(path: string): ImportedServers {
  const content = read(path);
  const servers = MEMBERS.map((name) => content[name]).find(isObject);
  if (servers === undefined)
    throw refuse(`${path} has no "mcpServers": an object with MCP servers by their names.`);
  const secrets: Record<string, string> = {};
  const cleaned = Object.fromEntries(
    Object.entries(servers).map(([name, server]) => [
      name,
      isObject(server) ? moveSecrets(name, server, secrets) : server,
    ]),
  );
  return { servers: cleaned, secrets };
}

function read(path: string): JsonObject {
  const format = /^\.ya?ml$/i.test(extname(path)) ? 'yaml' : 'json';
  const result = readSyntax(readText(path), format);
  if (result.kind === 'broken') throw refuse(`${path}:${result.line}: ${result.message}`);
  const value = toValue(result.root);
  return isObject(value) ? value : {};
}

function readText(path: string): string {
  try {
    return readFileSync(path, 'utf8');
  } catch (error) {
    throw refuse(`--servers: ${path} cannot be read (${String(error)}).`);
  }
}

const refuse = (line: string) => new CommandError('Nothing was written:', [line]);

function toValue(node: FileNode): unknown {
  if (node.kind === 'scalar') return node.value;
  if (node.kind === 'list') return node.items.map(toValue);
  return Object.fromEntries(node.members.map(({ name, value }) => [name, toValue(value)]));
}

const SECRET_MEMBERS = ['env', 'headers'];

function moveSecrets(
  name: string,
  server: JsonObject,
  secrets: Record<string, string>,
): JsonObject {
  const moved = { ...server };
  for (const member of SECRET_MEMBERS) {
    const texts = server[member];
    if (!isObject(texts)) continue;
    moved[member] = Object.fromEntries(
      Object.entries(texts).map(([key, value]) => {
        // One that names a variable already is no secret, and an empty variable counts as none.
        if (typeof value !== 'string' || !isSecretName(key) || value === '' || value.includes('${'))
          return [key, value];
        return [key, moveValue(nameVariable(name, key), value, secrets)];
      }),
    );
  }
  return moved;
}

/** What stands in its place: a variable, or several where no line of `.env` can have all of it. */
function moveValue(name: string, value: string, secrets: Record<string, string>): string {
  const parts = renderEnvLine(name, value) === undefined ? value.split(NOT_IN_ENV) : [value];
  return parts
    .map((part) => {
      if (part === '' || NOT_IN_ENV.test(part)) return part;
      const variable = findFreeName(name, secrets);
      secrets[variable] = part;
      return `\${${variable}}`;
    })
    .join('');
}

/** Without these, a value can stand between backticks. */
const NOT_IN_ENV = /([\r`]+)/;

/** `github` and `GITHUB_TOKEN` make `GITHUB_TOKEN`; `web` and `Authorization` make `WEB_AUTHORIZATION`. */
function nameVariable(server: string, key: string): string {
  const [prefix, name] = [server, key].map((text) =>
    text.toUpperCase().replace(/[^A-Z0-9]+/g, '_'),
  );
  const variable = name?.startsWith(`${prefix}_`) ? name : `${prefix}_${name}`;
  // A reference takes no name that begins with a digit.
  return variable.replace(/^(?=\d)/, '_');
}

const SETTING_NAMES: ReadonlySet<string> = new Set(
  SETTINGS.flatMap(({ variable, alias = variable }) => [variable, alias]),
);

/**
 * Other servers may make the same name, and settings of the gateway have some: whoever shares one gets what is not his.
 */
function findFreeName(name: string, secrets: Readonly<Record<string, string>>): string {
  const isTaken = (variable: string): boolean =>
    SETTING_NAMES.has(variable) || Object.hasOwn(secrets, variable);
  let free = name;
  for (let number = 2; isTaken(free); number += 1) free = `${name}_${number}`;
  return free;
}
