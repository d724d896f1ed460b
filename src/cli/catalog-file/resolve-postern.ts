// Hooks for Node's module loader: `postern`, imported by a catalogue, is the package that serves it.
// A second copy from another node_modules would have error and question types of its own, which the
// running gateway does not know. And npx leaves no copy where a catalogue would find one.
let ownEntry = '';

/** Called with the URL of our own index, where the hooks are registered. */
export function initialize(url: string): void {
  ownEntry = url;
}

export const resolve = <Context, Next>(
  specifier: string,
  context: Context,
  next: (specifier: string, context: Context) => Next,
) => (specifier === 'postern' ? { url: ownEntry, shortCircuit: true } : next(specifier, context));
