// OAUTH_CLIENT_ID, which some tokens name as their audience.
import type { Rule } from '../rules.ts';
import { defineSetting } from '../setting.ts';

const clientIdRule: Rule<string> = {
  parse: (text) => (text.startsWith('svc-') ? undefined : text),
  allowed: 'a client id that does not begin with svc-, the prefix of registered clients',
};

export const clientId = defineSetting('OAUTH_CLIENT_ID', clientIdRule, {
  summary: 'The client that you registered at the provider for the gateway.',
  details:
    'The clients of the gateway log in through it. Required with OAUTH_MODE=broker. In proxy mode, registered clients cannot log in without it.',
});
