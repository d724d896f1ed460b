// The runtime of broker mode: an authorization server in front of the provider's (§5.11).

import type { BrokerConfig } from '../../config/groups/oauth.ts';
import type { Connections } from '../../mcp/upstream/connections.ts';
import type { Runtime } from '../../runtime/runtime.ts';
import type { Seal } from '../../store/seal/seal.ts';
import type { OwnResources } from './resources.ts';

/** `baseUrl` is the gateway's own issuer. */
export interface BrokerRuntime extends Runtime, OwnResources {
  /** Settings of the mode. */
  readonly oauth: BrokerConfig;
  readonly servers: ServersOfBroker;
  readonly loginSeal: Seal;
  /** `loginSeal` for records of logins: warns of records that another secret sealed. */
  readonly seal: Seal;
}

/** The servers behind the gateway, as logins know them. */
export interface ServersOfBroker {
  /** Claims that rules name at the moment. */
  readonly listNamedClaims: () => readonly string[];
  /** True if users need a connection for one of the servers. */
  readonly hasConnections: () => boolean;
  /** Undefined if there are none. */
  readonly connections: Connections | undefined;
}
