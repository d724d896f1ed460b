// What cannot go with ID_JAG, or has no use without it.
import { idJagSettings } from './groups/id-jag.ts';
import { isBrokerMode } from './groups/oauth-mode.ts';
import { serverSettings } from './groups/server.ts';
import type { FindProblem } from './problem.ts';
import { isDefault } from './setting.ts';

export const ID_JAG_PROBLEM_FINDERS: readonly FindProblem[] = [
  (read) =>
    isBrokerMode(read) &&
    !read(idJagSettings.isEnabled) &&
    !isDefault(idJagSettings.issuers, read) &&
    'ID_JAG_ISSUERS has no use without ID_JAG=true: no assertion is taken. Set ID_JAG=true, or remove ID_JAG_ISSUERS.',

  // Its clients are users of that issuer.
  (read) => {
    const baseUrl = read(serverSettings.baseUrl);
    const own = read(idJagSettings.issuers).find(
      (issuer) => issuer.replace(/\/+$/, '') === baseUrl,
    );
    return (
      read(idJagSettings.isEnabled) &&
      own !== undefined &&
      `ID_JAG_ISSUERS: ${JSON.stringify(own)} is this gateway (BASE_URL), which makes no such assertions. Name the identity provider of your users.`
    );
  },
];
