// Module loader hooks that resolve a catalogue's import of `postern` to the running package. A second copy from another
// node_modules would define its own error and request types, which the running gateway does not recognize. With npx, the
// catalogue could not find any copy.

/** URLs of Postern's own files by the specifiers that authors import. */
type OwnEntries = Readonly<Record<string, string>>;

let ownEntries: OwnEntries = {};

/** Called when the hooks are registered. */
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
