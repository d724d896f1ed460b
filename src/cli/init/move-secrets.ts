// Replaces apparent secrets in a server's entry with variables.

import { SETTINGS } from '../../config/config.ts';
import { hasVariable, toVariableName } from '../../config/file/expand.ts';
import { listVariables } from '../../config/setting.ts';
import { isObject, type JsonObject } from '../../platform/json.ts';
import {
  isSecretName,
  looksLikeSecret,
  replaceSecrets,
  replaceSecretsOfCommand,
} from '../../platform/secret-texts.ts';
import {
  ADDRESS_MEMBERS,
  AUTH_MEMBER,
  isInTheClear,
  isSecretOfAuth,
  RECORD_MEMBERS,
} from '../../servers/config/plain-secrets.ts';
import { renderEnvLine } from './render-files.ts';

/** A change to a member of a server. Contains no values. */
export interface MovedSecret {
  readonly server: string;
  /** `name`, `url`, `args[2]`, `env.API_KEY`. */
  readonly member: string;
  readonly what: string;
}

/** Returns the server without its secrets. Adds the moved ones to `secrets`, and the changes to `changes`. */
export function moveSecrets(
  server: string,
  given: JsonObject,
  secrets: Record<string, string>,
  changes: MovedSecret[],
): JsonObject {
  const note = (member: string, what: string) => changes.push({ server, member, what });
  /** For variables that could not get the obvious name: the reason. */
  const reasons = new Map<string, string>();
  const moved = { ...given };
  for (const member of RECORD_MEMBERS) {
    const texts = given[member];
    if (isObject(texts)) moved[member] = moveNamed(member, texts);
  }
  for (const member of ADDRESS_MEMBERS) {
    const text = given[member];
    if (typeof text === 'string') moved[member] = noteLeft(member, moveParts(member, text));
  }
  const auth = given[AUTH_MEMBER];
  if (isObject(auth)) moved[AUTH_MEMBER] = moveOfAuth(AUTH_MEMBER, auth);
  const { command, args } = given;
  if (typeof command === 'string') {
    const move = () => replaceSecretsOfCommand(command, (secret, name) => moveValue(name, secret));
    moved.command = noteLeft('command', noteMoves('command', move));
  }
  if (Array.isArray(args))
    moved.args = args.map((text: unknown, index): unknown => {
      if (typeof text !== 'string') return text;
      const before: unknown = args[index - 1];
      const member = `args[${index}]`;
      return noteLeft(
        member,
        moveParts(member, text, '', typeof before === 'string' ? before : undefined),
      );
    });
  return moved;

  function moveOfAuth(member: string, members: JsonObject): JsonObject {
    return Object.fromEntries(
      Object.entries(members).map(([name, value]) => {
        const path = `${member}.${name}`;
        if (isObject(value)) return [name, moveOfAuth(path, value)];
        const isMoved = typeof value === 'string' && isSecretOfAuth(name) && isInTheClear(value);
        // `clientSecret` becomes `client Secret`.
        const words = name.replace(/(?<=[a-z])(?=[A-Z])/g, ' ');
        const move = () => moveValue(words, String(value));
        return [name, isMoved ? noteMoves(path, move) : value];
      }),
    );
  }

  function moveNamed(member: string, texts: JsonObject): JsonObject {
    return Object.fromEntries(
      Object.entries(texts).map(([key, text]) => {
        const path = `${member}.${key}`;
        // An empty value counts as unset.
        if (typeof text !== 'string' || text === '') return [key, text];
        if (hasVariable(text)) {
          note(path, 'left: it names a variable');
          return [key, text];
        }
        if (isSecretName(key)) return [key, noteMoves(path, () => moveValue(key, text))];
        const rest = moveParts(path, text, key);
        if (looksLikeSecret(rest)) noteLeft(path, rest);
        else if (rest === text) note(path, 'left: it does not look like a secret');
        return [key, rest];
      }),
    );
  }

  /** `group` is the name of the text itself, a prefix for the names of its secrets; `before` is the preceding argument. */
  function moveParts(member: string, text: string, group = '', before?: string) {
    return noteMoves(member, () =>
      replaceSecrets(text, before, (secret, name) => moveValue(`${group} ${name}`, secret)),
    );
  }

  /** Runs `move`, and notes which variables it created. */
  function noteMoves(member: string, move: () => string) {
    const known = Object.keys(secrets).length;
    const rest = move();
    const made = Object.keys(secrets)
      .slice(known)
      .map((variable) => variable + (reasons.get(variable) ?? ''));
    if (made.length > 0) note(member, `moved to .env: ${made.join(', ')}`);
    return rest;
  }

  /** Notes a value that still looks like a secret: the user has to decide. */
  function noteLeft(member: string, text: string) {
    if (looksLikeSecret(text)) note(member, 'left: it looks like a secret, move it yourself');
    return text;
  }

  /** Returns the replacement: a variable, or several if the value does not fit into one line of `.env`. */
  function moveValue(key: string, value: string) {
    const name = nameVariable(server, key);
    const parts = renderEnvLine(name, value) === undefined ? value.split(NOT_IN_ENV) : [value];
    return parts
      .map((part, index) => {
        const isBetween = index % 2 === 1;
        if (part === '' || isBetween) return part;
        const variable = findFreeName(name, (one) => Object.hasOwn(secrets, one));
        const reader = findOtherReader(name);
        if (reader !== undefined) reasons.set(variable, ` (${name} ${reader})`);
        secrets[variable] = part;
        return `\${${variable}}`;
      })
      .join('');
  }
}

/** Without these characters, a value fits into one line between backticks. */
const NOT_IN_ENV = /((?:[^\P{Cc}\t]|[`\u2028\u2029])+)/u;

// Names for the variables in `.env` that `postern init` creates for servers.

/** `github` and `GITHUB_TOKEN` give `GITHUB_TOKEN`; `web` and `Authorization` give `WEB_AUTHORIZATION`. */
function nameVariable(server: string, key: string) {
  const [prefix, name] = [toVariableName(server), toVariableName(key)];
  return name.startsWith(`${prefix}_`) ? name : `${prefix}_${name}`;
}

const SETTING_NAMES: ReadonlySet<string> = new Set(SETTINGS.flatMap(listVariables));

/** The gateway's own process reads `.env`, so these names would affect Node.js, TLS, the dynamic loader or a package. */
const OBEYED = /^(?:NODE|OPENSSL|SSL|LD|DYLD|UV|OTEL|NPM|GLIBC|MALLOC)_|_PROXY$/;

/** The reason why no secret can have this name. */
function findOtherReader(name: string) {
  if (SETTING_NAMES.has(name)) return 'is a setting of the gateway';
  return OBEYED.test(name) ? 'has a meaning for Node.js or its libraries' : undefined;
}

/** Servers with similar names may lead to the same variable, and must not get each other's secrets. */
function findFreeName(wanted: string, isTaken: (name: string) => boolean) {
  const name = findOtherReader(wanted) === undefined ? wanted : `SERVER_${wanted}`;
  let free = name;
  for (let number = 2; isTaken(free); number += 1) free = `${name}_${number}`;
  return free;
}

/** Chooses a variable for `key` of a server. */
export const chooseVariable = (
  server: string,
  key: string,
  isTaken: (name: string) => boolean,
): string => findFreeName(nameVariable(server, key), isTaken);
