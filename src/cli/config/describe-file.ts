// What the configuration file puts behind the gateway, without what may be secret.
import type { Config } from '../../config/config.ts';
import { formatProblem } from '../../config/problem.ts';
import type { Env } from '../../config/setting.ts';
import { hideSecretArguments } from '../../platform/secret-texts.ts';
import type { UpstreamConfig } from '../../upstreams/config/upstream-config.ts';
import { describeUser } from '../setup/program-users.ts';

export interface DescribedFile {
  readonly path: string;
  readonly problems: readonly string[];
  readonly warnings: readonly string[];
  readonly builtIn?: boolean;
  /** `POSTERN_CATALOG`: whose tools stand in place of the built-in ones. */
  readonly catalog?: string;
  readonly servers: readonly DescribedServer[];
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
  /** How it learns of the caller. */
  readonly auth?: string;
}

/** Undefined where there is none. */
export async function describeFile(config: Config, env: Env): Promise<DescribedFile | undefined> {
  const { configFile: path, catalogFile: catalog } = config.server;
  if (path === undefined) return undefined;
  const { readSetup } = await import('../setup/config-file/read-setup.ts');
  const parsed = await readSetup(path, config, env);
  if (parsed.kind === 'problems')
    return {
      path,
      problems: parsed.problems.map(formatProblem),
      warnings: [],
      servers: [],
      rules: 0,
    };
  const { file, lock } = parsed.setup;
  return {
    path,
    problems: [],
    warnings: parsed.warnings,
    builtIn: file.builtIn && catalog === undefined,
    ...(file.builtIn && catalog !== undefined && { catalog }),
    servers: file.servers.map(describeServer),
    rules: file.meansNoRules ? 'everyone' : file.rules.length,
    isLocked: lock !== undefined,
  };
}

const describeServer = (server: UpstreamConfig): DescribedServer =>
  server.kind === 'stdio'
    ? {
        name: server.name,
        kind: 'stdio',
        target: hideSecretArguments(server.command),
        ...(server.runAs && { runAs: describeUser(server.runAs) }),
      }
    : {
        name: server.name,
        kind: 'http',
        target: new URL(server.url).host,
        auth: server.auth.type,
      };
