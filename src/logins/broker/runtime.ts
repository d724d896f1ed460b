// Broker mode: an authorization server of its own before the provider's (§5.11), and what all of it stands on.

import type { BrokerConfig } from '../../config/groups/oauth.ts';
import type { ServerUrls } from '../../config/server-urls.ts';
import type { Connections } from '../../mcp/upstream/connections.ts';
import type { Runtime } from '../../runtime/runtime.ts';
import type { Seal } from '../../store/seal/seal.ts';
import type { OwnResources } from './resources.ts';

/** `baseUrl` is the issuer of its own. */
export interface BrokerRuntime extends Runtime, OwnResources {
  /** The settings of the mode. */
  readonly oauth: BrokerConfig;
  readonly servers: ServersOfBroker;
  readonly loginSeal: Seal;
  /** The same for records of logins: warns of those that another secret sealed. */
  readonly seal: Seal;
}

/** The servers behind the gateway, as logins know them. */
export interface ServersOfBroker {
  readonly urls: ServerUrls;
  /** Claims that rules name at the moment. */
  readonly listNamedClaims: () => readonly string[];
  /** True if users need a connection for one of the servers. */
  readonly hasConnections: () => boolean;
  /** Undefined if there are none. */
  readonly connections: Connections | undefined;
}
