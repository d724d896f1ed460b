// A setting: an environment variable, declared once, as a row of its group in groups/.
import type { Rule } from './rules.ts';

export interface Setting<T> {
  readonly variable: string;
  /** Read where the variable is not set: other programs know the setting by both names. */
  readonly alias?: string;
  readonly rule: Rule<T>;
  readonly default: Default<T>;
  /** One line of Markdown, for the table of the documentation. */
  readonly summary: string;
  /** Further sentences, beyond the summary. */
  readonly details?: string;
  /** The only `OAUTH_MODE` in which it has an effect. */
  readonly mode?: 'broker' | 'proxy';
  /** Never printed, not even when it is wrong. */
  readonly isSecret?: true;
  /** Pairs `name=value` of which only the names are printed. */
  readonly hidesValues?: true;
}

/** The value of a setting: what the environment says, or the default. */
export type Read = <T>(setting: Setting<T>) => T;

/** `text` is as it would be written in the environment. */
export type Default<T> = { readonly value: T; readonly text: string } | ComputedDefault<T>;

/** A default that depends on other settings. */
export interface ComputedDefault<T> {
  readonly compute: (read: Read) => T;
  /** The usual value, in Markdown. */
  readonly text: string;
  /** The other values, and when each holds (`in broker mode`). */
  readonly exceptions?: readonly (readonly [text: string, when: string])[];
}

type Described = Omit<Setting<unknown>, 'variable' | 'rule' | 'default'>;

/**
 * A row. Where its default may be undefined, or it has none, so may its value. `written` is the default as it would be written in
 * the environment, where `String()` does not make that of it.
 */
export function defineSetting<T>(
  variable: string,
  rule: Rule<T>,
  row: Described &
    (
      | { readonly default: NoInfer<T>; readonly written?: string }
      | { readonly computed: ComputedDefault<NoInfer<T>> }
    ),
): Setting<T>;
export function defineSetting<T>(
  variable: string,
  rule: Rule<T>,
  row: Described & { readonly computed?: ComputedDefault<NoInfer<T> | undefined> },
): Setting<T | undefined>;
export function defineSetting<T>(
  variable: string,
  rule: Rule<T>,
  {
    default: value,
    written = String(value ?? ''),
    computed,
    ...row
  }: Described & {
    readonly default?: T;
    readonly written?: string;
    readonly computed?: ComputedDefault<T | undefined>;
  },
): Setting<T | undefined> {
  return { variable, rule, default: computed ?? { value, text: written }, ...row };
}

/** The object into which the rows of a table are read: a member for each, by the name that the row has there. */
export type ValuesOf<Rows> = {
  readonly [Name in keyof Rows]: Rows[Name] extends Setting<infer T> ? T : never;
};

export function readAll<Rows extends Readonly<Record<string, Setting<unknown>>>>(
  rows: Rows,
  read: Read,
): ValuesOf<Rows> {
  const values = Object.entries(rows).map(([name, setting]) => [name, read(setting)]);
  return Object.fromEntries(values);
}

const readDefault = <T>(setting: Setting<T>, read: Read): T =>
  'compute' in setting.default ? setting.default.compute(read) : setting.default.value;

/** True if its value is what it would be if it were not set. */
export const isDefault = <T>(setting: Setting<T>, read: Read): boolean =>
  JSON.stringify(read(setting)) === JSON.stringify(readDefault(setting, read));

/** The value of a setting that the checks at start have found to be there. */
export function requireValue<T>(value: T | undefined, { variable }: Setting<unknown>): T {
  if (value === undefined) throw new Error(`${variable} is missing`);
  return value;
}

export type Env = Readonly<Record<string, string | undefined>>;

/** The variables that it is read from, the first that is set. */
export const listVariables = ({ variable, alias }: Setting<unknown>): readonly string[] =>
  alias === undefined ? [variable] : [variable, alias];

/** Reads the setting's variable in the environment. An empty variable counts as unset: compose files pass them. */
export function findVariable(setting: Setting<unknown>, env: Env) {
  for (const name of listVariables(setting)) {
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

// The part of a setting's text that may be printed: anybody may see a terminal or a log.

/**
 * Leaves out the values of a URL's query, and its fragment; null where nothing may be seen: for secrets, for a URL
 * with user info, and for what is no value of the setting and may have been meant for one.
 */
export function hideSecrets(
  text: string,
  { isSecret, hidesValues, rule }: Pick<Setting<unknown>, 'isSecret' | 'hidesValues' | 'rule'>,
): string | null {
  const isInvalid = rule.parse(text) === undefined;
  if (isSecret || /:\/\/[^/]*@/.test(text) || (isInvalid && text.includes('@'))) return null;
  return hidesValues ? text.replace(/=[^,]*/g, '=…') : hideQueries(text);
}

/** `https://id.example/keys?token=…#…`. Also of addresses that are not quite right. */
export const hideQueries = (text: string): string =>
  text
    .replace(/([^\s,?]*[:/][^\s,?]*)(\?[^#\s,]*)/g, (_all, address: string, query: string) =>
      address.concat(query.replace(/([?&;])([^=&;]*=)?[^&;]+/g, '$1$2…')),
    )
    .replace(/(:\/[^\s,#]*#)[^\s,]+/g, '$1…');
