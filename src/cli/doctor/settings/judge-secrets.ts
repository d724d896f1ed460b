// Which of the secrets in OAUTH_STATE_SECRET sealed what lies in the store: that can be seen without opening it.
import type { GrantCount } from '../../../store/redis/examine.ts';
import type { Seal } from '../../../store/seal/seal.ts';
import { HOW_TO_CHANGE_SECRET } from '../../../store/seal/secrets.ts';
import { type Finding, failure, ok, unknown } from '../finding.ts';

/** Some records of logins under way. Without one nothing is known of other replicas, and one process has none. */
export function judgeLogins(
  records: readonly string[],
  seal: Pick<Seal, 'namesForeignSecret'>,
): Finding | undefined {
  if (records.length === 0) return undefined;
  const foreign = records.filter((record) => seal.namesForeignSecret(record));
  return foreign.length > 0
    ? failure('replicas.secret', {
        what: `${foreign.length} of ${records.length} logins under way were sealed with a secret that is not here.`,
        why: 'Another replica has another OAUTH_STATE_SECRET (or another service uses this Redis): logins fail now and then.',
        setting: 'OAUTH_STATE_SECRET',
        remedy: `set the same list of secrets on all replicas. ${HOW_TO_CHANGE_SECRET}`,
      })
    : ok(
        'replicas.secret',
        'Logins under way were sealed with the OAUTH_STATE_SECRET that is here.',
      );
}

const GRANTS_CHECK = 'store.secrets';

/** With several secrets: whether all but the first may go. */
export function judgeGrants(count: GrantCount | undefined): Finding {
  if (count === undefined)
    return unknown(GRANTS_CHECK, {
      what: 'how many logins still are sealed with an older OAUTH_STATE_SECRET: the user of Redis may not ask.',
      setting: 'OAUTH_STATE_SECRET',
      remedy:
        'keep the older secrets for OAUTH_REFRESH_TTL_SECONDS after the new one came to the front.',
    });
  const { all, older } = count;
  return older > 0
    ? ok(GRANTS_CHECK, {
        what: `${older} of ${all} logins still are sealed with an older OAUTH_STATE_SECRET.`,
        why: 'Each is sealed anew when its client refreshes. Until then keep the older secrets: without them these users have to log in again.',
      })
    : ok(
        GRANTS_CHECK,
        `No login needs an older OAUTH_STATE_SECRET (${all} are sealed with the first). The others may go a day after the first one came to the front.`,
      );
}
