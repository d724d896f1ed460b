// ID-JAG: a company's identity provider says of its users what a client may do for them, without a login in the browser.
import { isSafeForTokens } from '../../platform/address.ts';
import { flag, httpUrl, type Rule } from '../rules.ts';
import { defineSetting, type Read, readAll, type ValuesOf } from '../setting.ts';
import { providerSettings } from './provider.ts';

/** Each has a discovery document and a key set that are fetched in the background. */
const MAX_ISSUERS = 20;

const issuers: Rule<readonly string[]> = {
  parse(text) {
    const items = text.split(',').map((item) => item.trim());
    const areRight = items.every(
      (item) => httpUrl.parse(item) !== undefined && isSafeForTokens(item),
    );
    return areRight && items.length <= MAX_ISSUERS ? [...new Set(items)] : undefined;
  },
  allowed: `a comma-separated list of at most ${MAX_ISSUERS} https URLs (http on this machine), each exactly as in the iss claim`,
};

export const idJagSettings = {
  isEnabled: defineSetting('ID_JAG', flag, {
    default: { value: false },
    summary:
      'Takes assertions of a company’s identity provider in place of a login in the browser (ID-JAG, Enterprise-Managed Authorization).',
    details:
      'A client that the configuration file names, or whose metadata document has a key, then gets a token for a user at once. See [Enterprises](enterprise.md).',
    mode: 'broker',
  }),
  issuers: defineSetting('ID_JAG_ISSUERS', issuers, {
    default: {
      text: 'OIDC_ISSUER',
      compute: (read) => {
        const issuer = read(providerSettings.issuer);
        return issuer === undefined ? [] : [issuer];
      },
    },
    summary: 'The issuers whose assertions are taken.',
    details:
      'The gateway trusts them with the users whom they name: name none that is not yours. Each has discovery and keys of its own. The users of each are users of their own, even where two have the same `sub`.',
    mode: 'broker',
  }),
};

export type IdJagConfig = ValuesOf<typeof idJagSettings>;

export const readIdJagConfig = (read: Read): IdJagConfig => readAll(idJagSettings, read);
