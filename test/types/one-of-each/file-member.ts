// A member of the configuration file: how it is read, and what editors show of it, are one object.
import { choice } from '../../../src/config/file/shapes/scalar.ts';
import { defineMember, object } from '../../../src/config/file/shapes/shape.ts';

const teaMembers = {
  leaves: defineMember('leaves', choice('green', 'black'), 'Which tea it is: green, or black.'),
};

export const teaShape = object({
  allowed: 'an object such as { "leaves": "green" }',
  members: Object.values(teaMembers),
  build: ({ read }) => ({ leaves: read(teaMembers.leaves) ?? 'black' }),
});
