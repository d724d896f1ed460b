// Other programs expand `$TOKEN`, too. Here it is sent as it is, and a server that refuses it does not say why.
import type { Shape } from './shape.ts';

/** The whole value, or all after the scheme of a header. */
const BARE = /^(?:[A-Za-z]+ )?\$[A-Za-z_][A-Za-z0-9_]*$/;

/** Does not repeat it: it may be a secret that begins so. */
const WARNING =
  'This is no variable without braces, and stays as it is. If one is meant, write ${NAME}.';

export const isBareVariable = (text: string): boolean => BARE.test(text);

export const warnOfBareVariable = (shape: Shape<string>): Shape<string> => ({
  schema: shape.schema,
  read(node, place) {
    const isBare = node.kind === 'scalar' && isBareVariable(String(node.value));
    if (isBare) place.context.warn(node.line, place.path, WARNING);
    return shape.read(node, place);
  },
});
