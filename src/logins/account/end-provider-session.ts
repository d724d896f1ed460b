// §13.5: whoever logs out at /account can log out at the provider, too (OpenID Connect RP-Initiated Logout 1.0).
import { createRedirectReply, type Reply } from '../../http/endpoint/message.ts';
import type { Browsers } from '../../http/endpoint/own-pages.ts';
import type { ProviderEndpoints } from '../../http/oauth-client/provider-metadata.ts';
import { createSecretRecords, type SealedStore } from '../../store/records.ts';
import { buildProviderRequest } from '../broker/redirect-to-provider.ts';
import type { StoredBrowserSession } from './browser-sessions.ts';

export interface EndProviderSession {
  /** Of the page on which the provider logs browsers out; undefined where it has none. */
  findHost(): Promise<string | undefined>;
  /** The browser goes there. Undefined where there is no such page. */
  redirect(
    session: Pick<StoredBrowserSession, 'idToken'>,
    cookie: string | undefined,
  ): Promise<Reply | undefined>;
  /** The host from which this browser comes back; undefined for what anybody can write into an address. */
  findReturn(state: string, cookie: string | undefined): Promise<string | undefined>;
}

export interface EndProviderSessionDeps {
  /** `BASE_URL`. */
  readonly baseUrl: string;
  /** The gateway's own client at the provider. */
  readonly clientId: string;
  readonly endpoints: Pick<ProviderEndpoints, 'findEndSessionUrl'>;
  readonly browsers: Pick<Browsers, 'readHash'>;
  readonly records: SealedStore;
}

/** A browser that is at the provider; found by the state that it brings back. */
interface EndingSession {
  readonly browser: string | undefined;
  readonly host: string;
}

/** The provider may ask whether it is meant. */
const ENDING_SECONDS = 600;

export function createEndProviderSession(deps: EndProviderSessionDeps): EndProviderSession {
  const { baseUrl, clientId, endpoints, browsers, records } = deps;
  const ending = createSecretRecords<EndingSession>(records, 'provider-logout', ENDING_SECONDS);

  return {
    async findHost() {
      const url = await endpoints.findEndSessionUrl();
      return url && new URL(url).host;
    },
    async redirect({ idToken }, cookie) {
      const url = await endpoints.findEndSessionUrl();
      if (url === undefined) return undefined;
      const { host } = new URL(url);
      const state = await ending.put({ browser: browsers.readHash(cookie), host });
      return createRedirectReply(
        buildProviderRequest(url, [
          ['client_id', clientId],
          ['id_token_hint', idToken],
          ['post_logout_redirect_uri', `${baseUrl}/account`],
          ['state', state],
        ]),
      );
    },
    async findReturn(state, cookie) {
      const found = await ending.get(state);
      const browser = browsers.readHash(cookie);
      return browser !== undefined && found?.browser === browser ? found.host : undefined;
    },
  };
}

/** Characters: it goes into an address, which not every server reads at any length. */
const MAX_HINT = 4096;

/** What of a login's ID token is kept for it. Without one most providers ask whether it is meant. */
export const selectHint = (idToken: unknown): string | undefined =>
  typeof idToken === 'string' && idToken.length <= MAX_HINT ? idToken : undefined;
