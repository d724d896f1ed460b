// A token without a browser: `curl <issuer>/token-for/ada`.
import type { Provider } from 'oidc-provider';
import { type DevProviderSettings, describeResource, SCOPES } from './configuration.ts';

/** What follows it is a name, of characters that no shell and no URL changes. */
export const TOKEN_PATH = '/token-for/';

const NAME = /^[\w.@-]{1,100}$/;

export const isName = (text: string): boolean => NAME.test(text);

/** The access token that a login under this name would give; undefined for what is no name. */
export async function issueToken(
  provider: Provider,
  settings: DevProviderSettings,
  name: string,
): Promise<string | undefined> {
  if (!isName(name)) return undefined;
  const client = await provider.Client.find(settings.client.id);
  if (client === undefined) throw new Error(`There is no client ${settings.client.id}`);
  const resource = `${settings.gatewayUrl}/mcp`;
  const token = new provider.AccessToken({
    client,
    accountId: name,
    grantId: '',
    gty: 'authorization_code',
    scope: SCOPES.join(' '),
    expiresIn: settings.accessTokenTtlSeconds,
    resourceServer: {
      ...describeResource(settings, resource),
      identifier: () => resource,
      scopes: new Set(SCOPES),
    },
  });
  return token.save();
}
