// What the configuration file puts behind the gateway, without what may be secret.

import { createHash } from 'node:crypto';
import type { Config } from '../../config/config.ts';
import { formatProblem } from '../../config/problem.ts';
import {
  createReader,
  type Env,
  findVariable,
  hideSecrets,
  type Read,
  type Setting,
} from '../../config/setting.ts';
import { SETTING_GROUPS } from '../../config/settings.ts';
import type { UpstreamConfig } from '../../mcp/upstream/upstream-config.ts';
import { describeServer as describeTransport } from '../../servers/transport/transports.ts';
import { describeProgramUser } from '../setup/program-users.ts';

export interface DescribedFile {
  readonly path: string;
  readonly problems: readonly string[];
  readonly warnings: readonly string[];
  readonly builtIn?: boolean;
  /** `POSTERN_CATALOG`: whose tools stand in place of the built-in ones. */
  readonly catalog?: string;
  readonly servers: readonly DescribedServer[];
  readonly views: readonly { readonly name: string; readonly title: string }[];
  /** How many; `everyone` where that is what the file says in their place. */
  readonly rules: number | 'everyone';
  /** Whether there is a `postern.lock`. */
  readonly isLocked?: boolean;
}

interface DescribedServer {
  readonly name: string;
  readonly kind: UpstreamConfig['kind'];
  /** The host of its URL, or the program. Arguments and paths may hold secrets. */
  readonly target: string;
  /** The user of the system that a program runs as, where that is not the gateway's own. */
  readonly runAs?: string;
  readonly auth?: string;
}

/** Undefined where there is none. */
export async function describeFile(config: Config, env: Env): Promise<DescribedFile | undefined> {
  const { configFile: path, catalogFile: catalog } = config.server;
  if (path === undefined) return undefined;
  const { readSetup } = await import('../setup/config-file/read-setup.ts');
  const parsed = await readSetup(path, config, env);
  if (parsed.kind === 'problems') {
    const problems = parsed.problems.map(formatProblem);
    return { path, problems, warnings: [], servers: [], views: [], rules: 0 };
  }
  const { file, lock } = parsed.setup;
  return {
    path,
    problems: [],
    warnings: parsed.warnings,
    builtIn: file.builtIn && catalog === undefined,
    ...(file.builtIn && catalog !== undefined && { catalog }),
    servers: file.servers.map(describeServer),
    views: (file.views ?? []).map(({ name, title }) => ({ name, title })),
    rules: file.meansNoRules ? 'everyone' : file.rules.length,
    isLocked: lock !== undefined,
  };
}

function describeServer(server: UpstreamConfig): DescribedServer {
  const { name, kind } = server;
  const { target, auth, program } = describeTransport(server);
  return {
    name,
    kind,
    target,
    ...(auth && { auth: auth.type }),
    ...(program?.runAs && { runAs: describeProgramUser(program.runAs) }),
  };
}

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

type Source = 'environment' | '.env' | '--config' | 'default';

interface Origins {
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

/** Of a default that is computed from other settings is hidden what is hidden of them. */
function describeDefault(setting: Setting<unknown>, read: Read): string | null {
  const { default: fallback } = setting;
  if (!('compute' in fallback)) return (fallback.text ?? writeValue(fallback.value)) || null;
  const text = writeValue(read(setting));
  return text && hideSecrets(text, setting);
}

function writeValue(value: unknown): string | null {
  if (value === undefined) return null;
  return typeof value === 'object' && !Array.isArray(value) ? JSON.stringify(value) : String(value);
}
