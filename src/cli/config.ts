// `postern config`: what `postern start` would run with.

import { createHash } from 'node:crypto';
import { styleText } from 'node:util';
import type { Config } from '../config/config.ts';
import { loadConfig } from '../config/load.ts';
import { describeMisspelled, findMisspelledVariables } from '../config/misspelled.ts';
import { ConfigError, formatProblem } from '../config/problem.ts';
import {
  createReader,
  type Env,
  findVariable,
  hideSecrets,
  type Read,
  type Setting,
} from '../config/setting.ts';
import { SETTING_GROUPS } from '../config/settings.ts';
import type { UpstreamConfig } from '../mcp/upstream/upstream-config.ts';
import { escapeInvisible } from '../platform/invisible.ts';
import {
  describeServer as describeTransport,
  findTransport,
} from '../servers/transport/transports.ts';
import { prepareEnvironment } from './command-line/env-file.ts';
import type { Flags, Invocation, InvokedProcess, Texts } from './command-line/invocation.ts';
import {
  describeCost,
  describeExpensive,
  isCostly,
  type MeasuredFile,
} from './setup/measure-lists.ts';
import { describeProgramUser } from './setup/program-users.ts';

/** Exit code 1 where anything is wrong. */
export async function showConfig(
  { all, lists, config: file, json }: Texts<'config'> & Flags<'all' | 'lists' | 'json'>,
  { process, console }: Invocation,
): Promise<void> {
  const envFile = prepareEnvironment({ config: file }, process.env);
  const { config, problems } = loadAsFarAsPossible(process.env);
  const settings = describeSettings(process.env, {
    fromFile: envFile?.added ?? {},
    fromOptions: file === undefined ? {} : { POSTERN_CONFIG: '--config' },
    problems,
  });
  const report: ConfigReport = {
    settings: settings.filter(
      ({ source, hasProblem }) => all || json || source !== 'default' || hasProblem,
    ),
    envFile: envFile?.path,
    file: config && (await describeFile(config, process.env)),
    ...(lists && config && problems.length === 0 && { lists: await readLists(config, process) }),
    problems,
    warnings:
      // The problems name what was misspelled themselves.
      problems.length > 0 ? [] : findMisspelledVariables(process.env).map(describeMisspelled),
  };
  console.log(
    json ? escapeInvisible(JSON.stringify(report, undefined, 2)) : renderReport(report, { all }),
  );
  if (problems.length > 0 || (report.file?.problems.length ?? 0) > 0) process.exitCode = 1;
}

/** `config` is undefined where nothing can be said of the configuration file. Where a provider is missing, it can be read. */
function loadAsFarAsPossible(env: Env) {
  const { config, problems } = load(env);
  if (config !== undefined) return { config, problems };
  const relaxed = { ...env, AUTH_REQUIRED: 'false', OAUTH_MODE: 'proxy', OAUTH_CONSENT: 'off' };
  return { config: load(relaxed).config, problems };
}

function load(env: Env) {
  try {
    return { config: loadConfig(env), problems: [] };
  } catch (error) {
    if (error instanceof ConfigError) return { config: undefined, problems: error.problems };
    throw error;
  }
}

interface ConfigReport {
  readonly settings: readonly DescribedSetting[];
  /** The path of `.env`, where there is one. */
  readonly envFile: string | undefined;
  readonly file: DescribedFile | undefined;
  /** Costs of each list of tools, where that is asked for. */
  readonly lists?: MeasuredFile | undefined;
  readonly problems: readonly string[];
  readonly warnings: readonly string[];
}

function renderReport(given: ConfigReport, { all }: { readonly all: boolean }): string {
  const report = makeVisible(given);
  const { settings, file, problems, warnings } = report;
  const groups = [...new Set(settings.map(({ group }) => group))];
  const widths = [
    Math.max(0, ...settings.map(({ variable }) => variable.length)),
    Math.min(MAX_VALUE_WIDTH, Math.max(0, ...settings.map((row) => describeValue(row).length))),
  ] as const;
  const sections = groups.map((group) => [
    styleText('bold', group),
    ...settings.filter((row) => row.group === group).map((row) => renderRow(row, widths)),
  ]);
  return [
    ...sections,
    ...(settings.length === 0 ? [['No setting is set: all have their defaults.']] : []),
    ...(all ? [] : [['All other settings have their defaults: postern config --all']]),
    renderFile(report),
    ...(report.lists === undefined ? [] : [renderLists(report.lists)]),
    renderProblems(
      [...problems, ...(file?.problems ?? [])],
      [
        ...warnings,
        ...(file?.warnings ?? []),
        ...(report.lists?.idle.map(({ message }) => message) ?? []),
      ],
    ),
  ]
    .map((lines) => lines.join('\n'))
    .join('\n\n');
}

/** The folder may be another's: nothing that its files say moves the cursor of a terminal, and hides a setting. */
const makeVisible = (report: ConfigReport): ConfigReport =>
  JSON.parse(JSON.stringify(report), (_name, value: unknown) =>
    typeof value === 'string' ? escapeInvisible(value) : value,
  );

/** A longer value moves the source in its own line to the right, and in no other. */
const MAX_VALUE_WIDTH = 50;

function renderRow(
  row: DescribedSetting,
  [nameWidth, valueWidth]: readonly [number, number],
): string {
  const { variable, source, hasProblem } = row;
  const mark = hasProblem ? styleText('red', '✗') : ' ';
  const origin = styleText('dim', source);
  return `${mark} ${variable.padEnd(nameWidth)}  ${describeValue(row).padEnd(valueWidth)}  ${origin}`;
}

function describeValue({ value, fingerprint }: DescribedSetting): string {
  if (fingerprint !== undefined)
    return `${value === null ? '' : `${value} `}(secret, ${fingerprint})`;
  return (value ?? '(not set)') || '(none)';
}

function renderFile({ file, settings }: ConfigReport): readonly string[] {
  if (file === undefined) {
    const named = settings.find(({ variable }) => variable === 'POSTERN_CONFIG')?.value;
    return named
      ? [`${named} was not read: the settings have problems.`]
      : ['No configuration file (--config FILE, or POSTERN_CONFIG).'];
  }
  const { path, builtIn, catalog, servers, views, rules, isLocked, problems } = file;
  const head = styleText('bold', path);
  if (problems.length > 0) return [head, `${styleText('red', '✗')} has problems`];
  return [
    head,
    ...servers.map(
      ({ name, kind, target, runAs, auth = 'none' }) =>
        `  ${name}: ${findTransport({ kind }).verb} ${target}${runAs === undefined ? '' : `, user ${runAs}`}${auth === 'none' ? '' : `, ${auth}`}`,
    ),
    ...(catalog === undefined ? [] : [`  your own tools: ${catalog}`]),
    ...views.map(({ name, title }) => `  view ${name}: ${title}, at /mcp/${name}`),
    `  built-in tools: ${builtIn ? 'yes' : 'no'}, rules: ${rules}, postern.lock: ${isLocked ? 'yes' : 'no'}`,
  ];
}

function renderLists({ costs }: MeasuredFile): readonly string[] {
  return [
    styleText('bold', 'Lists of tools'),
    ...costs.flatMap((cost) => [
      `  ${describeCost(cost)}`,
      ...(isCostly(cost)
        ? [`    This is much. The most expensive: ${describeExpensive(cost)}.`]
        : []),
    ]),
  ];
}

/** Loaded where lists are asked for: most of the time no server is. */
async function readLists(
  config: Config,
  process: InvokedProcess,
): Promise<MeasuredFile | undefined> {
  const { askLists } = await import('./setup/measure-lists.ts');
  return askLists(config, process);
}

function renderProblems(
  problems: readonly string[],
  warnings: readonly string[],
): readonly string[] {
  if (problems.length + warnings.length === 0)
    return [`${styleText('green', '✓')} No problems: postern start would start.`];
  return [
    ...problems.map((problem) => `${styleText('red', '✗')} ${problem}`),
    ...warnings.map((warning) => `${styleText('yellow', '!')} ${warning}`),
  ];
}

// The servers that the configuration file puts behind the gateway, without what may be secret.

interface DescribedFile {
  readonly path: string;
  readonly problems: readonly string[];
  readonly warnings: readonly string[];
  readonly builtIn?: boolean;
  /** `POSTERN_CATALOG`: whose tools stand in place of the built-in ones. */
  readonly catalog?: string;
  readonly servers: readonly DescribedServer[];
  readonly views: readonly { readonly name: string; readonly title: string }[];
  /** Their number; `everyone` where that is what the file says in their place. */
  readonly rules: number | 'everyone';
  /** True where there is a `postern.lock`. */
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
  const { readSetup } = await import('./setup/read-setup.ts');
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

interface DescribedSetting {
  readonly variable: string;
  readonly group: string;
  /** As it would be written, with … for what may be secret; null where it is not set, or secret as a whole. */
  readonly value: string | null;
  readonly source: Source;
  /** The first 8 hexadecimal digits of the SHA-256 of the whole. */
  readonly fingerprint?: string;
  /** The start ends because of it. */
  readonly hasProblem: boolean;
}

type Source = 'environment' | '.env' | '--config' | 'default';

interface Origins {
  /** Variables that `.env` adds to the environment. */
  readonly fromFile: Env;
  /** Variables that an option sets. */
  readonly fromOptions: Readonly<Record<string, Source>>;
  /** Sentences that begin with a variable. */
  readonly problems: readonly string[];
}

function describeSettings(env: Env, origins: Origins): readonly DescribedSetting[] {
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

/** A default that is computed from other settings hides what they hide. */
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
