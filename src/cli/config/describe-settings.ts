// Each setting: its value, and who says so.
import { createHash } from 'node:crypto';
import {
  createReader,
  type Env,
  findVariable,
  hideSecrets,
  type Read,
  type Setting,
} from '../../config/setting.ts';
import { SETTING_GROUPS } from '../../config/settings.ts';

export interface DescribedSetting {
  readonly variable: string;
  readonly group: string;
  /** As it would be written, with … for what may be secret; null where it is not set, or secret as a whole. */
  readonly value: string | null;
  readonly source: Source;
  /** Where something is hidden: the first 8 hexadecimal digits of the SHA-256 of the whole. */
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
          : describeGiven(given.text, setting)),
        source: given === undefined ? 'default' : findSource(given.name, origins),
        hasProblem: broken.has(given?.name ?? setting.variable),
      };
    }),
  );
}

const findSource = (name: string, { fromFile, fromOptions }: Origins): Source =>
  fromOptions[name] ?? (Object.hasOwn(fromFile, name) ? '.env' : 'environment');

function describeGiven(
  text: string,
  setting: Setting<unknown>,
): Pick<DescribedSetting, 'value' | 'fingerprint'> {
  const value = hideSecrets(text, setting);
  if (value === text) return { value };
  return { value, fingerprint: createHash('sha256').update(text).digest('hex').slice(0, 8) };
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
