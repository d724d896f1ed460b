// What variables of `.env` are called that `postern init` makes for servers.
import { toVariableName } from '../../config/file/expand.ts';
import { SETTINGS } from '../../config/settings.ts';

/** `github` and `GITHUB_TOKEN` make `GITHUB_TOKEN`; `web` and `Authorization` make `WEB_AUTHORIZATION`. */
export function nameVariable(server: string, key: string): string {
  const [prefix, name] = [toVariableName(server), toVariableName(key)];
  return name.startsWith(`${prefix}_`) ? name : `${prefix}_${name}`;
}

const SETTING_NAMES: ReadonlySet<string> = new Set(
  SETTINGS.flatMap(({ variable, alias = variable }) => [variable, alias]),
);

/** The gateway's own process reads `.env`: Node.js, TLS, the loader of the system or a package in it would obey these. */
const OBEYED = /^(?:NODE|OPENSSL|SSL|LD|DYLD|UV|OTEL|NPM|GLIBC|MALLOC)_|_PROXY$/;

/** Why no secret can have this name. */
export function findOtherReader(name: string): string | undefined {
  if (SETTING_NAMES.has(name)) return 'is a setting of the gateway';
  return OBEYED.test(name) ? 'has a meaning for Node.js or its libraries' : undefined;
}

/** Servers with similar names may make the same one, and must not get each other's secrets. */
export function findFreeName(wanted: string, isTaken: (name: string) => boolean): string {
  const name = findOtherReader(wanted) === undefined ? wanted : `SERVER_${wanted}`;
  let free = name;
  for (let number = 2; isTaken(free); number += 1) free = `${name}_${number}`;
  return free;
}

/** The name of a variable for `key` of a server. */
export const chooseVariable = (
  server: string,
  key: string,
  isTaken: (name: string) => boolean,
): string => findFreeName(nameVariable(server, key), isTaken);
