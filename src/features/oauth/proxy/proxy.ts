// OAUTH_MODE=proxy: clients are sent on to the provider, and their requests forwarded.
import type { ProxyConfig } from '../../../core/config/groups/oauth.ts';
import type { Clients } from '../clients/clients.ts';
import type { RedirectToProvider } from '../consent/consent.ts';
import type { LogLogin } from '../provider/login-log.ts';
import type { NoteClient } from '../provider/note-client.ts';
import type { ProviderApi } from '../provider/provider-api.ts';
import type { RecentAnswers } from '../refresh/recent-answers.ts';
import {
  checkRequest,
  type ReadAuthorizationRequest,
  readClientAndRedirectUri,
} from '../request/authorization-request.ts';
import { createProxyRedirect } from './redirect-to-provider.ts';
import { createProxyRevoke } from './revoke.ts';
import { createProxyToken } from './token.ts';

export interface ProxyDeps {
  readonly clients: Clients;
  readonly api: ProviderApi;
  readonly recentAnswers: RecentAnswers;
  readonly logLogin: LogLogin;
  readonly noteClient: NoteClient;
}

export interface ProxyHandlers {
  readonly readRequest: ReadAuthorizationRequest;
  readonly redirectToProvider: RedirectToProvider;
  readonly token: ReturnType<typeof createProxyToken>;
  readonly revoke: ReturnType<typeof createProxyRevoke>;
}

export function createProxy(config: ProxyConfig, deps: ProxyDeps): ProxyHandlers {
  const { clients } = deps;
  const rules = { requiresState: true, requiresPlainScope: config.consent.kind === 'page' };
  return {
    // Errors are never redirected: the provider answers the client.
    async readRequest(query) {
      const request = await readClientAndRedirectUri(query, clients);
      checkRequest(request.parameters, rules);
      return request;
    },
    redirectToProvider: createProxyRedirect(config),
    token: createProxyToken(config, deps),
    revoke: createProxyRevoke(config, deps),
  };
}
