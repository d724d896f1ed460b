// From environment variables to the values of settings.
import { type Read, readDefault, type Setting } from './setting.ts';

export type Env = Readonly<Record<string, string | undefined>>;

export interface GivenVariable {
  readonly name: string;
  readonly text: string;
}

/** What the environment says of the setting. An empty variable counts as unset: compose files pass them. */
export function findVariable(
  { variable, alias }: Setting<unknown>,
  env: Env,
): GivenVariable | undefined {
  for (const name of alias === undefined ? [variable] : [variable, alias]) {
    const text = env[name];
    if (text) return { name, text };
  }
  return undefined;
}

/** Reads settings from the variables; for a value that is not allowed it reads the default. */
export function createReader(env: Env): Read {
  return function read<T>(setting: Setting<T>): T {
    const given = findVariable(setting, env);
    const value = given && setting.rule.parse(given.text);
    return value ?? readDefault(setting, read);
  };
}
