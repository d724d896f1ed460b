// §22.1: who is an operator, and by which client: an operator's token for another client is in other hands, too.
import { OPERATORS_CLIENT_ID } from '../../auth/own-clients.ts';
import { identifyCredential, readClaimedClient, type UserContext } from '../../endpoint/message.ts';
import { createBoundedMap } from '../../platform/bounded-map.ts';
import { buildTokenClientKey } from '../../store/keys.ts';
import type { KeyValue } from '../../store/store.ts';

export interface OperatorsDeps {
  /** Has a note of each token that the operators' page got. */
  readonly store: Pick<KeyValue, 'get'>;
  /** `ADMIN_GROUPS`. */
  readonly groups: readonly string[];
  /** `ADMIN_CLIENTS`. */
  readonly clients: readonly string[];
}

export type Operators = ReturnType<typeof createOperators>;

/** Tokens that need not be looked up again, so that the page also works while the store does not answer. */
const MAX_TOKENS = 1000;

export function createOperators(deps: OperatorsDeps) {
  const groups = new Set(deps.groups);
  const clients = new Set(deps.clients);
  /** By the SHA-256 of a token. What was noted of a token stays true. */
  const ofPage = createBoundedMap<string, true>(MAX_TOKENS);

  async function isTokenOfPage(user: UserContext): Promise<boolean> {
    const digest = identifyCredential(user);
    if (ofPage.get(digest)) return true;
    if ((await deps.store.get(buildTokenClientKey(digest))) !== OPERATORS_CLIENT_ID) return false;
    ofPage.set(digest, true);
    return true;
  }

  return {
    isOperator: (user: UserContext | undefined) =>
      user?.groups?.some((group) => groups.has(group)) === true,
    /**
     * The client that the token was issued to; undefined where that is none whose tokens are taken.
     *
     * @throws what the store throws.
     */
    async findClient(user: UserContext) {
      const granted = user.grant?.clientId;
      if (granted !== undefined) {
        return granted === OPERATORS_CLIENT_ID || clients.has(granted) ? granted : undefined;
      }
      const claimed = readClaimedClient(user.claims);
      if (claimed !== undefined && clients.has(claimed)) return claimed;
      return (await isTokenOfPage(user)) ? OPERATORS_CLIENT_ID : undefined;
    },
  };
}
