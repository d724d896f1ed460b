// The arguments of a program, what variables bring into them, and secrets that stand there in the clear.
import { replaceSecrets } from '../../secret-texts.ts';
import { listValues } from '../expand.ts';
import { list } from '../shapes/collection.ts';
import { freeText } from '../shapes/scalar.ts';
import { placeItem, type Shape } from '../shapes/shape.ts';
import type { FileNode } from '../syntax/file-node.ts';
import { toVariableName } from '../variable-name.ts';

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

const texts = list(argument, { allowed: 'a list of texts' });

export const argumentList: typeof texts = {
  schema: texts.schema,
  read(node, place) {
    const items = node.kind === 'list' ? node.items : [];
    items.forEach((item, index) => {
      const [variable] = nameSecrets(toText(item), toText(items[index - 1]));
      if (variable !== undefined)
        place.context.warn(item.line, placeItem(place, index).path, describeSecret(variable));
    });
    return texts.read(node, place);
  },
};

const toText = (node: FileNode | undefined): string =>
  node?.kind === 'scalar' ? String(node.value) : '';

function nameSecrets(text: string, before: string): readonly string[] {
  const names: string[] = [];
  replaceSecrets(text, before, (secret, name) => {
    names.push(toVariableName(name));
    return secret;
  });
  return names;
}

const describeSecret = (variable: string): string =>
  `This looks like a secret. Put it into .env (or the environment), and write a variable in its place, such as \${${variable}}: who reads this file has it.`;
