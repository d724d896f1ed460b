// Reads the configuration file and the lock next to it from disk.

import { readFileSync } from 'node:fs';
import { dirname, extname, resolve } from 'node:path';
import type { Config } from '../../config/config.ts';
import { httpSettings, mcpSettings, outboundSettings } from '../../config/groups/http.ts';
import { serverSettings, upstreamSettings } from '../../config/groups/server.ts';
import { stateSecrets, storeSettings } from '../../config/groups/store.ts';
import { loadConfig } from '../../config/load.ts';
import { formatProblem, type Problem } from '../../config/problem.ts';
import { type Env, listVariables } from '../../config/setting.ts';
import { findAskProblems } from '../../control/approvals/approvals.ts';
import {
  type FileSource,
  type GatewayFile,
  type ParsedGatewayFile,
  parseGatewayFile,
  type Setup,
} from '../../gateway/configuration/gateway-file.ts';
import { createLock } from '../../lock/lock.ts';
import { LockFileError } from '../../lock/lock-file.ts';
import { findMachineClientProblems } from '../../logins/client-authentication/machine-client-shape.ts';
import type { UpstreamConfig } from '../../mcp/upstream/upstream-config.ts';
import { describeCode, getErrorCode } from '../../platform/error-code.ts';
import { decodeUtf8 } from '../../platform/json.ts';
import type { OutboundConfig } from '../../platform/outbound/proxy-choice.ts';
import {
  describeServer,
  findAuthProblems,
  findServerCredentials,
} from '../../servers/transport/transports.ts';
import { CommandError, UsageError } from '../command-line/errors.ts';
import { findLockPath, type LockOnDisk, readLockOnDisk } from './lock-file-on-disk.ts';
import { findProgramUser } from './program-users.ts';

export type ReadSetup = Awaited<ReturnType<typeof readSetup>>;

/** Never rejects. */
export async function readSetup(path: string, config: Config, env: Env) {
  const parsed = await readConfigFile(path, config, env);
  const { isWhole } = parsed;
  const lock = readLock(path);
  const problems = [
    ...(parsed.kind === 'problems'
      ? parsed.problems
      : findSettingProblems(parsed.file, config, path)),
    ...('problem' in lock ? [lock.problem] : []),
  ];
  if (parsed.kind === 'problems' || 'problem' in lock || problems.length > 0)
    return { kind: 'problems' as const, problems, isWhole };
  const { file, warnings } = parsed;
  const setup: Setup = {
    file,
    lock: lock.kind === 'lock' ? createLock(lock.file) : undefined,
    meansNoLock: lock.kind === 'empty',
  };
  return {
    kind: 'parsed' as const,
    setup,
    /** For the log: valid but possibly unintended choices. */
    warnings: [...warnings, ...warnOfMissingRules(path, file, config)],
    /** True if the text of the file proves that it is complete. */
    isWhole,
  };
}

/** Problems with settings that the file requires. */
const findSettingProblems = (file: GatewayFile, config: Config, path: string) => [
  ...findAuthProblems(file.servers, config).map(({ message }) => ({ message, place: path })),
  ...findMachineClientProblems(file.clients, config),
  ...findAskProblems(file, config),
];

/** An unreadable lock must not count as missing: that would approve everything. */
function readLock(path: string): LockOnDisk | { readonly problem: Problem } {
  try {
    return readLockOnDisk(findLockPath(path));
  } catch (error) {
    if (error instanceof LockFileError) return { problem: { message: error.message } };
    throw error;
  }
}

/** Far more than a real configuration: a larger file is probably a mistake. */
const MAX_BYTES = 1_048_576;

/**
 * `path` is as the user wrote it, and used in messages. `isWhole`: whether the text proves that it is complete. Truncated JSON
 * does not parse; truncated YAML may, so only a document end marker (`...`) is proof. Never rejects.
 */
async function readConfigFile(
  path: string,
  config: FileSource['config'],
  env: Env,
): Promise<ParsedGatewayFile & { readonly isWhole: boolean }> {
  const content = readText(path);
  if ('problem' in content) return { kind: 'problems', problems: [content.problem], isWhole: true };
  const format = /^\.ya?ml$/i.test(extname(path)) ? 'yaml' : 'json';
  const parsed = await parseGatewayFile(content.text, {
    fileName: path,
    format,
    env,
    config,
    findProgramUser,
    resolvePath: (other) => resolve(dirname(path), other),
    readText: (other) => readFileSync(other, 'utf8'),
  });
  return { ...parsed, isWhole: format === 'json' || DOCUMENT_END.test(content.text) };
}

/** A document end marker, followed by comments at most. */
const DOCUMENT_END = /(?:^|[\r\n])\.\.\.[ \t]*(?:#[^\r\n]*)?\s*$/;

type Content = { readonly text: string } | { readonly problem: Problem };

function readText(path: string): Content {
  const refuse = (message: string): Content => ({ problem: { place: path, message } });
  if (extname(path).toLowerCase() === '.toml')
    return refuse('Postern reads JSON and YAML, not TOML.');
  if (/^\.[cm]?[jt]s$/i.test(extname(path)))
    return refuse(`Postern reads JSON and YAML here. Pass your own tools with --catalog ${path}.`);
  try {
    const bytes = readFileSync(path);
    if (bytes.length > MAX_BYTES) return refuse('a configuration file has at most 1 MiB.');
    const text = decodeUtf8(bytes);
    return text === undefined ? refuse('the file is not in UTF-8. Save it in UTF-8.') : { text };
  } catch (error) {
    const code = getErrorCode(error);
    if (code === 'ENOENT' || code === 'ENOTDIR')
      return refuse(
        `there is no such file (${resolve(path)}). It is named by --config or POSTERN_CONFIG.`,
      );
    if (code === 'EISDIR') return refuse('this is a folder. Name the file in it.');
    return refuse(`the file cannot be read (${describeCode(error)}).`);
  }
}

// §18.5: without rules every user may use everything, which goes unnoticed until it is exploited.

/** Warns in production, unless the file opts out explicitly. */
function warnOfMissingRules(
  path: string,
  { servers, rules, meansNoRules }: GatewayFile,
  { auth, server }: Config,
): readonly string[] {
  const isMeant = rules.length > 0 || meansNoRules;
  if (servers.length === 0 || isMeant || server.environment !== 'production') return [];
  const who = auth.required ? 'Everyone who can log in' : 'Everyone who can reach the gateway';
  const names = servers.map(({ name }) => name).join(', ');
  const shared = servers.flatMap((one) =>
    describeServer(one).asking === undefined ? [] : [one.name],
  );
  const sharing =
    shared.length === 0
      ? ''
      : ` These run as one process for all users and cannot tell them apart: ${shared.join(', ')} ("isolation" changes that).`;
  return [
    `${path}: There are no rules. ${who} may use everything that these servers offer: ${names}.${sharing} Write rules under "rules", or "rules": "everyone" (rules: everyone in YAML) if you mean it.`,
  ];
}

// The settings and the configuration file for a command that queries servers.

/** @throws UsageError or CommandError */
export async function readConfiguration(command: string, env: Env) {
  const config = loadSettings(env);
  const { configFile: path } = config.server;
  if (path === undefined)
    throw new UsageError(
      `postern ${command} needs the configuration file, for example --config mcp.json.`,
    );
  return { path, file: await requireConfigFile(path, config, env) };
}

/** @throws CommandError with all problems of the file. */
export async function requireConfigFile(
  path: string,
  config: Config,
  env: Env,
): Promise<GatewayFile> {
  const parsed = await readConfigFile(path, config, env);
  if (parsed.kind === 'parsed') return parsed.file;
  throw new CommandError(
    'The configuration file has problems:',
    ...parsed.problems.map(formatProblem),
  );
}

/**
 * The settings that a command needs to query the servers in a configuration file. A provider is only required if a server needs it,
 * so that a pipeline can check the lock without one; settings for the gateway's pages and logins are left out.
 *
 * @throws ConfigError
 */
export function loadSettings(env: Env, servers: readonly UpstreamConfig[] = []): Config {
  const needsAll = servers.some((server) => {
    const { signsTokens, asksProvider } = findServerCredentials(server) ?? {};
    return signsTokens === true || asksProvider === true;
  });
  if (needsAll) return loadConfig(env);
  const needed = Object.entries(env).filter(([name]) => NEEDED.has(name));
  const withoutLogin = { AUTH_REQUIRED: 'false', OAUTH_CONSENT: 'off' };
  return loadConfig({ ...Object.fromEntries(needed), ...withoutLogin });
}

const NEEDED: ReadonlySet<string> = new Set(
  [
    serverSettings.configFile,
    serverSettings.logLevel,
    stateSecrets,
    ...[httpSettings, mcpSettings, outboundSettings, storeSettings, upstreamSettings].flatMap(
      (group) => Object.values(group),
    ),
  ].flatMap(listVariables),
);

// Outbound requests from this machine, without gateway settings, or with those of another gateway.

/** @throws ConfigError */
export function loadOutbound(env: NodeJS.ProcessEnv): OutboundConfig {
  const proxies = Object.entries(env).filter(([name]) => /^(https?|no)_proxy$/i.test(name));
  return loadConfig({ ...Object.fromEntries(proxies), AUTH_REQUIRED: 'false' }).outbound;
}
