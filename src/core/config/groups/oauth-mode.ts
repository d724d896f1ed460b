// OAUTH_MODE, by which the defaults of many other settings go.
import { oneOf } from '../rules.ts';
import { fixed, type Read, setting } from '../setting.ts';

export const mode = setting({
  variable: 'OAUTH_MODE',
  rule: oneOf('proxy', 'broker'),
  default: fixed('proxy'),
  help: 'broker (recommended): the gateway is its own issuer, and the provider knows one redirect URI, BASE_URL/oauth/callback. proxy: clients are sent to the provider, which must know the redirect URI of each.',
});

export const isBroker = (read: Read): boolean => read(mode) === 'broker';
