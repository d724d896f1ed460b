// Each setting: its value, and who says so.
import { createHash } from 'node:crypto';
import { createReader, type Env, findVariable } from '../../core/config/read-env.ts';
import type { Read, Setting } from '../../core/config/setting.ts';
import { SETTING_GROUPS } from '../../core/config/settings.ts';

export interface DescribedSetting {
  readonly variable: string;
  readonly group: string;
  /** As it would be written; null where it is not set, or secret. */
  readonly value: string | null;
  readonly source: Source;
  /** Of a secret: the first 8 hexadecimal digits of its SHA-256. */
  readonly fingerprint?: string;
  /** The start ends because of it. */
  readonly hasProblem: boolean;
}

export type Source = 'environment' | '.env' | '--config' | 'default';

export interface Origins {
  /** What `.env` adds to the environment. */
  readonly fromFile: Env;
  /** Variables that an option sets. */
  readonly fromOptions: Readonly<Record<string, Source>>;
  /** Sentences that begin with a variable. */
  readonly problems: readonly string[];
}

export function describeSettings(env: Env, origins: Origins): readonly DescribedSetting[] {
  const read = createReader(env);
  const broken = new Set(origins.problems.map((problem) => /^[A-Z0-9_]+/.exec(problem)?.[0]));
  return SETTING_GROUPS.flatMap(({ title, settings }) =>
    settings.map((setting) => {
      const given = findVariable(setting, env);
      return {
        variable: setting.variable,
        group: title,
        ...(given === undefined
          ? { value: describeDefault(setting, read) }
          : hideSecret(given.text, setting)),
        source: given === undefined ? 'default' : findSource(given.name, origins),
        hasProblem: broken.has(given?.name ?? setting.variable),
      };
    }),
  );
}

const findSource = (name: string, { fromFile, fromOptions }: Origins): Source =>
  fromOptions[name] ?? (Object.hasOwn(fromFile, name) ? '.env' : 'environment');

/** A URL with user info may hold a password, too. */
function hideSecret(
  text: string,
  { isSecret }: Setting<unknown>,
): Pick<DescribedSetting, 'value' | 'fingerprint'> {
  if (!isSecret && !/:\/\/[^/]*@/.test(text)) return { value: text };
  return {
    value: null,
    fingerprint: createHash('sha256').update(text).digest('hex').slice(0, 8),
  };
}

/** One that follows from a secret is secret. */
function describeDefault(setting: Setting<unknown>, read: Read): string | null {
  const { default: fallback, isSecret } = setting;
  if (!('compute' in fallback)) return (fallback.text ?? writeValue(fallback.value)) || null;
  return isSecret ? null : writeValue(read(setting));
}

function writeValue(value: unknown): string | null {
  if (value === undefined) return null;
  return typeof value === 'object' && !Array.isArray(value) ? JSON.stringify(value) : String(value);
}
