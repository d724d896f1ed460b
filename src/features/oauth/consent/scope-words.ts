// What scopes mean to whoever is asked for them.

/** In the order in which they are said. The first row whose scopes are all there has the word for them. */
const WORDS: readonly (readonly [scopes: readonly string[], words: string])[] = [
  [['profile', 'email'], 'See your name and e-mail address'],
  [['profile'], 'See your name'],
  [['email'], 'See your e-mail address'],
  [['openid'], 'See your user ID'],
  [['address'], 'See your postal address'],
  [['phone'], 'See your phone number'],
  [['groups'], 'See which groups you are in'],
  [['roles'], 'See which roles you have'],
  [['offline_access'], 'Stay signed in while you are away'],
];

const OTHERS = 'Use the other permissions that are listed below';

/** One sentence for each thing that the scopes allow. */
export function describeScopes(scopes: readonly string[]): readonly string[] {
  const rest = new Set(scopes);
  const described = WORDS.flatMap(([names, words]) => {
    if (!names.every((name) => rest.has(name))) return [];
    for (const name of names) rest.delete(name);
    // Whoever sees a name or an address knows who it is.
    if (names.includes('profile') || names.includes('email')) rest.delete('openid');
    return [words];
  });
  return rest.size === 0 ? described : [...described, OTHERS];
}
