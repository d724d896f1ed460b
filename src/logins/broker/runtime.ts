// Broker mode: an authorization server of its own before the provider's (§5.11), and what all of it stands on.

import type { BrokerConfig } from '../../config/groups/oauth.ts';
import type { ServerUrls } from '../../config/server-urls.ts';
import type { Runtime } from '../../runtime/runtime.ts';
import type { Seal } from '../../store/seal/seal.ts';
import { warnOfForeignSecrets } from '../../store/seal/secrets.ts';
import type { OwnResources } from '../request/authorization-request.ts';

/** `baseUrl` is the issuer of its own. */
export interface BrokerRuntime extends Runtime, OwnResources {
  /** The settings of the mode. */
  readonly oauth: BrokerConfig;
  readonly loginSeal: Seal;
  /** The same for records of logins: warns of those that another secret sealed. */
  readonly seal: Seal;
}

/** @throws Error in proxy mode, and without a secret. */
export function createBrokerRuntime(runtime: Runtime, serverUrls: ServerUrls): BrokerRuntime {
  const { config, loginSeal } = runtime;
  const { server, oauth } = config;
  if (oauth.mode !== 'broker') throw new Error('Clients get tokens of the provider');
  if (loginSeal === undefined) {
    throw new Error("The gateway's own tokens need a secret, and a provider");
  }
  const seal = warnOfForeignSecrets(loginSeal, runtime);
  return { ...runtime, baseUrl: server.baseUrl, serverUrls, oauth, loginSeal, seal };
}
