// Who has logged in at the development provider, and what each said of themselves.

export interface Accounts {
  /** Remembers the groups of this name, until it logs in with others. */
  setGroups(name: string, groups: readonly string[]): void;
  /** What tokens say of this name. */
  createClaims(name: string): {
    readonly name: string;
    readonly email: string;
    readonly groups: readonly string[];
  };
}

export const DEFAULT_GROUPS = 'developers';
/** Names whose groups are remembered: a test may log in under any number of them. */
const MAX_NAMES = 1000;
const MAX_GROUPS = 50;

export function createAccounts(): Accounts {
  /** Who logged in longest ago comes first. */
  const groupsOf = new Map<string, readonly string[]>();

  return {
    setGroups(name, groups) {
      groupsOf.delete(name);
      groupsOf.set(name, groups);
      const [oldest = ''] = groupsOf.keys();
      if (groupsOf.size > MAX_NAMES) groupsOf.delete(oldest);
    },
    createClaims: (name) => ({
      name,
      email: `${name.toLowerCase().replace(/[^a-z0-9]+/g, '.')}@example.com`,
      groups: groupsOf.get(name) ?? parseGroups(DEFAULT_GROUPS),
    }),
  };
}

/** `developers, operators`; none where nothing is typed. */
export const parseGroups = (text: string): readonly string[] =>
  text
    .split(',')
    .map((group) => group.trim())
    .filter((group) => group !== '')
    .slice(0, MAX_GROUPS);
