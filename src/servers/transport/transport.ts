// §18.1, §18.3: a transport as one value: the members of its servers in the configuration file, the facts that follow from them, and
// the function that opens a server.
import type { Member, MemberReader } from '../../config/file/shapes/shape.ts';

import type { Upstream, UpstreamRuntime } from '../../mcp/upstream/upstream.ts';
import type { UpstreamConfig, UpstreamFacts } from '../../mcp/upstream/upstream-config.ts';
import type {
  FileSurroundings,
  ProgramUser,
  ServerType,
  Unnamed,
} from '../config/common-members.ts';
import type { TypedAuth } from '../credentials/credential-type.ts';
import type { Credentials } from '../credentials/credentials.ts';
import type { ProgramHost } from '../stdio/program.ts';
import type { ProcessShare } from './process-share.ts';

/** A row of `transports.ts`. An entry of the file becomes a `Config`. */
export interface Transport<Config extends UpstreamConfig = UpstreamConfig> {
  readonly kind: Config['kind'];
  /** Values of `type` in an entry, of which it has all to itself; `types.told` goes on the sentence "With url it is". */
  readonly types: { readonly all: readonly ServerType[]; readonly told: string };
  /**
   * An entry has one of these, which says that it is of this transport. The first is the one to name to people. One in which a
   * password may stand is secret by its shape (`freeText({ isSecret: true })`): the file is warned of where that is in the clear.
   */
  readonly addresses: readonly [Member<unknown>, ...Member<unknown>[]];
  /** All of its own, the addresses among them. */
  readonly members: readonly Member<unknown>[];
  /**
   * For problems of an entry: what the address is, what the server is, and why it has no member of other transports, to go on the
   * sentence "Only a server with command has this": `. A queue has none.`
   */
  readonly words: {
    readonly address: string;
    readonly server: string;
    readonly whyNoOthers: string;
  };
  /** Stands before the target where a server is described. */
  readonly verb: 'runs' | 'at';
  /** Its servers have processes on this machine, which are counted. */
  readonly hasProcesses: boolean;
  /** `type` is that of the entry, where it has one. Undefined where a missing member was reported. */
  build(members: MemberReader, type: ServerType | undefined): Unnamed<Config> | undefined;
  /** Resolves the paths and names in it, once the whole file is read. Reports problems of these. */
  complete(
    config: Config,
    members: MemberReader,
    surroundings: FileSurroundings,
  ): Config | Promise<Config>;
  findFacts(config: Config): UpstreamFacts;
  describe(config: Config): ServerDescription;
  /** No server has to be reachable. */
  open(runtime: UpstreamRuntime, config: Config, reach: Reach): Upstream;
}

export const defineTransport = <Config extends UpstreamConfig>(
  definition: Transport<Config>,
): Transport<Config> => definition;

/** A server, as commands tell people of it. */
export interface ServerDescription {
  /** The host of its URL, or the program. Arguments and paths may hold secrets. */
  readonly target: string;
  /** Undefined where an entry cannot have it. */
  readonly auth: TypedAuth | undefined;
  /** A program that runs on this machine, and the user of the system that it runs as; undefined for the gateway's own. */
  readonly program: { readonly runAs: ProgramUser | undefined } | undefined;
  /** Advice to an operator where the server cannot be used. */
  readonly advice: string;
  /** The same with a process for each client, which can ask it, where now one that cannot ask serves all; else undefined. */
  readonly asking: UpstreamConfig | undefined;
}

/** The process that reaches the servers. */
export interface Reach {
  /** All input from outside of this process is counted here (`answerMemory`), and paced (`messagePace`). */
  readonly share: ProcessShare;
  readonly credentials: Credentials;
  readonly host: ProgramHost;
}
