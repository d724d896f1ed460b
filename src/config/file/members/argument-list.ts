// The arguments of a program, and what variables bring into them.
import { listValues } from '../expand.ts';
import { list } from '../shapes/collection.ts';
import { freeText } from '../shapes/scalar.ts';
import type { Shape } from '../shapes/shape.ts';

/** An argument of a program, and what variables of the environment bring into it. */
export interface Argument {
  readonly text: string;
  readonly values: readonly string[];
}

const argumentText = freeText({ isSecret: true });

const argument: Shape<Argument> = {
  schema: argumentText.schema,
  read(node, place) {
    const expanded = argumentText.read(node, place);
    if (expanded === undefined || node.kind !== 'scalar') return undefined;
    return { text: expanded, values: listValues(String(node.value), place.context.env) };
  },
};

export const argumentList = list(argument, { allowed: 'a list of texts' });
