// Hooks for Node's module loader: `postern`, imported by a catalogue, is the package that serves it.
// A second copy from another node_modules would have error and question types of its own, which the
// running gateway does not know. And npx leaves no copy where a catalogue would find one.

/** URLs of our own files by the names under which authors import them. */
type OwnEntries = Readonly<Record<string, string>>;

let ownEntries: OwnEntries = {};

/** Called where the hooks are registered. */
export function initialize(entries: OwnEntries): void {
  ownEntries = entries;
}

export function resolve<Context, Next>(
  specifier: string,
  context: Context,
  next: (specifier: string, context: Context) => Next,
) {
  const url = Object.hasOwn(ownEntries, specifier) ? ownEntries[specifier] : undefined;
  return url === undefined ? next(specifier, context) : { url, shortCircuit: true };
}
