// Broker mode: an authorization server of its own before the provider's (§5.11), and what all of it stands on.

import type { BrokerConfig } from '../../config/groups/oauth.ts';
import type { Runtime } from '../../runtime/runtime.ts';
import type { Seal } from '../../store/seal/seal.ts';
import type { OwnResources } from '../request/authorization-request.ts';

/** `baseUrl` is the issuer of its own. */
export interface BrokerRuntime extends Runtime, OwnResources {
  /** The settings of the mode. */
  readonly oauth: BrokerConfig;
  readonly loginSeal: Seal;
  /** The same for records of logins: warns of those that another secret sealed. */
  readonly seal: Seal;
}
