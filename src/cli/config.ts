// `postern config`: shows the settings that `postern start` would use.

import { createHash } from 'node:crypto';
import { styleText } from 'node:util';
import { type Config, SETTING_GROUPS } from '../config/config.ts';
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
import { escapeInvisible } from '../platform/invisible.ts';
import { describeServer, findTransport } from '../servers/transport/transports.ts';
import { prepareEnvironment } from './command-line/env-file.ts';
import type { Flags, Invocation, InvokedProcess, Texts } from './command-line/invocation.ts';
import { describeCost, describeExpensive, isCostly } from './setup/measure-lists.ts';
import { describeProgramUser } from './setup/program-users.ts';

/** Exits with code 1 if there is a problem. */
export async function showConfig(
  options: Texts<'config'> & Flags<'all' | 'lists' | 'json'>,
  { process, console }: Invocation,
): Promise<void> {
  const report = await createReport(options, process);
  console.log(
    options.json
      ? escapeInvisible(JSON.stringify(report, undefined, 2))
      : renderReport(report, options.all),
  );
  if (report.problems.length > 0 || (report.file?.problems.length ?? 0) > 0) process.exitCode = 1;
}

type ConfigReport = Awaited<ReturnType<typeof createReport>>;

async function createReport(
  { all, lists, config: file, json }: Parameters<typeof showConfig>[0],
  process: InvokedProcess,
) {
  const envFile = prepareEnvironment({ config: file }, process.env);
  const { env } = process;
  const { config: complete, problems } = load(env);
  const withoutLogin = { AUTH_REQUIRED: 'false', OAUTH_MODE: 'proxy', OAUTH_CONSENT: 'off' };
  // The configuration file can be read without a provider.
  const config = complete ?? load({ ...env, ...withoutLogin }).config;
  const settings = describeSettings(
    env,
    problems,
    envFile?.added ?? {},
    file === undefined ? {} : { POSTERN_CONFIG: '--config' },
  );
  return {
    settings: settings.filter(
      ({ source, hasProblem }) => all || json || source !== 'default' || hasProblem,
    ),
    /** The path of `.env`, if it exists. */
    envFile: envFile?.path,
    file: config && (await describeFile(config, env)),
    /** The cost of each list of tools. Loaded only if requested: most of the time no server is contacted. */
    lists:
      lists && config && problems.length === 0
        ? await (await import('./setup/measure-lists.ts')).askLists(config, process)
        : undefined,
    problems,
    warnings:
      // Problems already name misspelled variables.
      problems.length > 0 ? [] : findMisspelledVariables(env).map(describeMisspelled),
  };
}

function load(env: Env) {
  try {
    return { config: loadConfig(env), problems: [] };
  } catch (error) {
    if (error instanceof ConfigError) return { config: undefined, problems: error.problems };
    throw error;
  }
}

function renderReport(given: ConfigReport, all: boolean) {
  // The files may come from others: control characters could move the cursor and hide a setting.
  const report: ConfigReport = JSON.parse(JSON.stringify(given), (_name, value: unknown) =>
    typeof value === 'string' ? escapeInvisible(value) : value,
  );
  const { settings, file } = report;
  const problems = [...report.problems, ...(file?.problems ?? [])];
  const warnings = [
    ...report.warnings,
    ...(file?.warnings ?? []),
    ...(report.lists?.idle.map(({ message }) => message) ?? []),
  ];
  const groups = [...new Set(settings.map(({ group }) => group))];
  const nameWidth = Math.max(0, ...settings.map(({ variable }) => variable.length));
  const valueWidths = settings.map((row) => describeValue(row).length);
  const valueWidth = Math.min(MAX_VALUE_WIDTH, Math.max(0, ...valueWidths));
  const sections = groups.map((group) => [
    styleText('bold', group),
    ...settings
      .filter((row) => row.group === group)
      .map((row) => {
        const mark = row.hasProblem ? styleText('red', '✗') : ' ';
        const origin = styleText('dim', row.source);
        return `${mark} ${row.variable.padEnd(nameWidth)}  ${describeValue(row).padEnd(valueWidth)}  ${origin}`;
      }),
  ]);
  return [
    ...sections,
    ...(settings.length === 0 ? [['No settings are set: all have their defaults.']] : []),
    ...(all ? [] : [['All other settings have their defaults: postern config --all']]),
    renderFile(report),
    ...(report.lists === undefined
      ? []
      : [
          [
            styleText('bold', 'Lists of tools'),
            ...report.lists.costs.flatMap((cost) => [
              `  ${describeCost(cost)}`,
              ...(isCostly(cost)
                ? [`    This is a lot. The most expensive: ${describeExpensive(cost)}.`]
                : []),
            ]),
          ],
        ]),
    problems.length + warnings.length === 0
      ? [`${styleText('green', '✓')} No problems: postern start would work.`]
      : [
          ...problems.map((problem) => `${styleText('red', '✗')} ${problem}`),
          ...warnings.map((warning) => `${styleText('yellow', '!')} ${warning}`),
        ],
  ]
    .map((lines) => lines.join('\n'))
    .join('\n\n');
}

/** A longer value shifts the source column in its own line only. */
const MAX_VALUE_WIDTH = 50;

function describeValue({ value, fingerprint }: DescribedSetting) {
  if (fingerprint !== undefined)
    return `${value === null ? '' : `${value} `}(secret, ${fingerprint})`;
  return (value ?? '(not set)') || '(none)';
}

function renderFile({ file, settings }: ConfigReport) {
  if (file === undefined) {
    const named = settings.find(({ variable }) => variable === 'POSTERN_CONFIG')?.value;
    return named
      ? [`${named} was not read: the settings have problems.`]
      : ['No configuration file (--config FILE, or POSTERN_CONFIG).'];
  }
  const head = styleText('bold', file.path);
  if (!('builtIn' in file)) return [head, `${styleText('red', '✗')} has problems`];
  const { builtIn, catalog, servers, views, rules, isLocked } = file;
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

// Describes the servers that the configuration file puts behind the gateway, without possible secrets.

/** Undefined if there is no file. */
async function describeFile(config: Config, env: Env) {
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
    /** `POSTERN_CATALOG`: its tools replace the built-in ones. */
    catalog: file.builtIn ? catalog : undefined,
    servers: file.servers.map((server) => {
      const { target, auth, program } = describeServer(server);
      return {
        name: server.name,
        kind: server.kind,
        /** The host of the URL, or the program. Arguments and paths may contain secrets. */
        target,
        auth: auth?.type,
        /** The system user of a program, if it is not the gateway's own. */
        runAs: program?.runAs && describeProgramUser(program.runAs),
      };
    }),
    views: (file.views ?? []).map(({ name, title }) => ({ name, title })),
    /** The number of rules, or `everyone` if the file says so. */
    rules: file.meansNoRules ? 'everyone' : file.rules.length,
    /** True if there is a `postern.lock`. */
    isLocked: lock !== undefined,
  };
}

type DescribedSetting = ReturnType<typeof describeSettings>[number];

/** `fromFile`: variables from `.env`; `fromOptions`: variables set by options. Each problem begins with a variable. */
function describeSettings(
  env: Env,
  problems: readonly string[],
  fromFile: Env,
  fromOptions: Readonly<Record<string, string>>,
) {
  const read = createReader(env);
  const broken = new Set(problems.map((problem) => /^[A-Z0-9_]+/.exec(problem)?.[0]));
  return SETTING_GROUPS.flatMap(({ title, settings }) =>
    settings.map((setting) => {
      const { name = setting.variable, text } = findVariable(setting, env) ?? {};
      const value =
        text === undefined ? describeDefault(setting, read) : hideSecrets(text, setting);
      const origin = Object.hasOwn(fromFile, name) ? '.env' : 'environment';
      return {
        variable: setting.variable,
        group: title,
        /** As written in the environment, with … for possible secrets; null if the setting is unset or secret. */
        value,
        /** The first 8 hexadecimal digits of the SHA-256 of the complete text. */
        fingerprint:
          text === undefined || text === value
            ? undefined
            : createHash('sha256').update(text).digest('hex').slice(0, 8),
        source: text === undefined ? 'default' : (fromOptions[name] ?? origin),
        /** The problem prevents startup. */
        hasProblem: broken.has(name),
      };
    }),
  );
}

/** A default computed from other settings hides the same parts as they do. */
function describeDefault(setting: Setting<unknown>, read: Read) {
  const { default: fallback } = setting;
  if (!('compute' in fallback)) return (fallback.text ?? writeValue(fallback.value)) || null;
  const text = writeValue(read(setting));
  return text && hideSecrets(text, setting);
}

function writeValue(value: unknown) {
  if (value === undefined) return null;
  return typeof value === 'object' && !Array.isArray(value) ? JSON.stringify(value) : String(value);
}
