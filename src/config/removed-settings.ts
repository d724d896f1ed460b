// Settings that were removed. Whoever still sets one reads how to go on, in place of a gateway that does something else.
import type { Problem } from './problem.ts';
import type { Env } from './setting.ts';

const REMOVED_SETTINGS: Readonly<Record<string, string>> = {
  OAUTH_TOKENS:
    "there is no such setting any more. With OAUTH_MODE=broker clients always get tokens of the gateway's own, with OAUTH_MODE=proxy those of the provider. Remove it. To accept tokens of the provider beside the gateway's own, set OAUTH_ACCEPT_PROVIDER_TOKENS=true.",
  OAUTH_ACCESS_TOKEN:
    "there is no such setting any more: no client gets an ID token. Remove it. If the provider's access tokens are no JWTs, set OAUTH_MODE=broker, where clients get tokens of the gateway's own.",
  OAUTH_RESOURCE_PARAMETER:
    "there is no such setting any more. With OAUTH_MODE=broker clients get tokens of the gateway's own, so the provider need not know what its tokens are for. Remove it.",
};

export const isRemovedSetting = (variable: string): boolean =>
  Object.hasOwn(REMOVED_SETTINGS, variable);

/** An empty one counts as unset. */
export const findRemovedSettings = (env: Env): readonly Problem[] =>
  Object.entries(REMOVED_SETTINGS).flatMap(([place, message]) =>
    env[place] ? [{ place, message }] : [],
  );
