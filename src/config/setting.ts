// Declares a setting: an environment variable, as a row of its group in groups/.
import type { Rule } from './rules.ts';

export interface Setting<T> {
  readonly variable: string;
  /** A second name, used by other programs. It is read if the variable is not set. */
  readonly alias?: string;
  readonly rule: Rule<T>;
  readonly default: Default<T>;
  /** One line of Markdown, for the table in the documentation. */
  readonly summary: string;
  /** Additional sentences after the summary. */
  readonly details?: string;
  /** The only `OAUTH_MODE` in which the setting has an effect. */
  readonly mode?: 'broker' | 'proxy';
  /** Set if the value is never printed, even if it is invalid. */
  readonly isSecret?: true;
  /** Set if the value consists of pairs `name=value`, of which only the names are printed. */
  readonly hidesValues?: true;
}

/** Returns the value of a setting: from the environment, or the default. */
export type Read = <T>(setting: Setting<T>) => T;

/** `text` is the value in the form used in the environment. */
export type Default<T> = { readonly value: T; readonly text: string } | ComputedDefault<T>;

/** A default that depends on other settings. */
export interface ComputedDefault<T> {
  readonly compute: (read: Read) => T;
  /** The usual value, in Markdown. */
  readonly text: string;
  /** The other values, and the condition for each (`in broker mode`). */
  readonly exceptions?: readonly (readonly [text: string, when: string])[];
}

type Described = Omit<Setting<unknown>, 'variable' | 'rule' | 'default'>;

/**
 * Declares a setting. Without a default, or with one that may be undefined, the value may be undefined. `written` is the default in
 * the form used in the environment, if `String()` does not return that.
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

/** The object read from a table of settings: one member per row, with the same name. */
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

const readDefault = <T>(setting: Setting<T>, read: Read) =>
  'compute' in setting.default ? setting.default.compute(read) : setting.default.value;

/** True if the value equals the default. */
export const isDefault = <T>(setting: Setting<T>, read: Read): boolean =>
  JSON.stringify(read(setting)) === JSON.stringify(readDefault(setting, read));

/** Returns the value of a setting that the checks at startup guarantee to be set. */
export function requireValue<T>(value: T | undefined, { variable }: Setting<unknown>): T {
  if (value === undefined) throw new Error(`${variable} is missing`);
  return value;
}

export type Env = Readonly<Record<string, string | undefined>>;

/** The variables of the setting; the first one that is set counts. */
export const listVariables = ({ variable, alias }: Setting<unknown>): readonly string[] =>
  alias === undefined ? [variable] : [variable, alias];

/** Finds the setting's variable in the environment. An empty variable counts as unset: compose files pass empty variables. */
export function findVariable(setting: Setting<unknown>, env: Env) {
  for (const name of listVariables(setting)) {
    const text = env[name];
    if (text) return { name, text };
  }
  return undefined;
}

/** Reads settings from the environment; an invalid value reads as the default. */
export function createReader(env: Env): Read {
  return function read<T>(setting: Setting<T>): T {
    const given = findVariable(setting, env);
    const value = given && setting.rule.parse(given.text);
    return value ?? readDefault(setting, read);
  };
}

// The printable part of a setting's text, for terminals and logs that others can see.

/**
 * Hides the query values and the fragment of a URL. Returns null if nothing may be shown: for secrets, for URLs with user info, and
 * for invalid values that may contain a secret.
 */
export function hideSecrets(
  text: string,
  { isSecret, hidesValues, rule }: Pick<Setting<unknown>, 'isSecret' | 'hidesValues' | 'rule'>,
): string | null {
  const isInvalid = rule.parse(text) === undefined;
  if (isSecret || /:\/\/[^/]*@/.test(text) || (isInvalid && text.includes('@'))) return null;
  return hidesValues ? text.replace(/=[^,]*/g, '=…') : hideQueries(text);
}

/** `https://id.example/keys?token=…#…`. Also handles malformed URLs. */
export const hideQueries = (text: string): string =>
  text
    .replace(/([^\s,?]*[:/][^\s,?]*)(\?[^#\s,]*)/g, (_all, address: string, query: string) =>
      address.concat(query.replace(/([?&;])([^=&;]*=)?[^&;]+/g, '$1$2…')),
    )
    .replace(/(:\/[^\s,#]*#)[^\s,]+/g, '$1…');
