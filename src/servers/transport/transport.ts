// §18.1, §18.3: a transport as one value: the members of its servers in the configuration file, the facts that follow from them,
// and the function that opens a server.
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
  /** Values of `type` in an entry, which no other transport uses; `types.told` continues the sentence "With url it is". */
  readonly types: { readonly all: readonly ServerType[]; readonly told: string };
  /**
   * An entry has one of these members, which selects this transport. Messages to people mention the first. An address that may
   * contain a password is declared secret by its shape (`freeText({ isSecret: true })`), so the file gets a warning if it is in
   * plain text.
   */
  readonly addresses: readonly [Member<unknown>, ...Member<unknown>[]];
  /** All of its own members, including the addresses. */
  readonly members: readonly Member<unknown>[];
  /**
   * For problems with an entry: what the address is, what the server is, and why it has no members of other transports, which
   * continues the sentence "Only a server with command has this": `. A queue has none.`
   */
  readonly words: {
    readonly address: string;
    readonly server: string;
    readonly whyNoOthers: string;
  };
  /** Precedes the target in descriptions of a server. */
  readonly verb: 'runs' | 'at';
  /** True if its servers have processes on this machine, which are counted. */
  readonly hasProcesses: boolean;
  /** `type` is the entry's, if it has one. Undefined if a missing member was reported. */
  build(members: MemberReader, type: ServerType | undefined): Unnamed<Config> | undefined;
  /** Resolves the paths and names in the configuration once the whole file has been read, and reports their problems. */
  complete(
    config: Config,
    members: MemberReader,
    surroundings: FileSurroundings,
  ): Config | Promise<Config>;
  findFacts(config: Config): UpstreamFacts;
  describe(config: Config): ServerDescription;
  /** The server does not have to be reachable. */
  open(runtime: UpstreamRuntime, config: Config, reach: Reach): Upstream;
}

export const defineTransport = <Config extends UpstreamConfig>(
  definition: Transport<Config>,
): Transport<Config> => definition;

/** A server, described by commands to people. */
export interface ServerDescription {
  /** The host of its URL, or the program. Arguments and paths may contain secrets. */
  readonly target: string;
  /** Undefined if an entry cannot have it. */
  readonly auth: TypedAuth | undefined;
  /** A program that runs on this machine, and the system user that it runs as; undefined for the gateway's own. */
  readonly program: { readonly runAs: ProgramUser | undefined } | undefined;
  /** Advice for an operator if the server is unavailable. */
  readonly advice: string;
  /**
   * The same server with one process per client, which can ask that client. Defined only if the server currently has a shared
   * process, which cannot ask.
   */
  readonly asking: UpstreamConfig | undefined;
}

/** The process that contacts the servers. */
export interface Reach {
  /** All input from outside this process is counted (`answerMemory`) and paced (`messagePace`) here. */
  readonly share: ProcessShare;
  readonly credentials: Credentials;
  readonly host: ProgramHost;
}
