// The gateway's own secrets in the environment, which nothing behind it is given.
import { SETTINGS } from './settings.ts';

const SECRET_VARIABLES: ReadonlySet<string> = new Set(
  SETTINGS.filter(({ isSecret }) => isSecret).flatMap(({ variable, alias }) =>
    alias === undefined ? [variable] : [variable, alias],
  ),
);

/** Of these, an address alone is no secret: without user info and query. */
const ADDRESS = /_(?:URL|PROXY)$/;
const PLAIN_URL = /^[a-z][a-z0-9+.-]*:\/\/[^@?#\s]*$/i;

/** Whether a variable holds a secret of the gateway, or is meant to. */
export const isOwnSecret = (variable: string, value: string | undefined): boolean =>
  SECRET_VARIABLES.has(variable) &&
  !(ADDRESS.test(variable) && (value === undefined || PLAIN_URL.test(value)));
