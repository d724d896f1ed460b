// Run it with: node --test
// It calls the tools as a client does, through a gateway of its own.
import assert from 'node:assert/strict';
import { after, before, test } from 'node:test';
import { connect } from 'postern/testing';
import catalog from './catalog.mjs';

let client;
before(async () => {
  client = await connect(catalog, { user: { name: 'Ada', groups: ['developers'] } });
});
after(() => client.close());

test('roll_dice rolls one of the sides', async () => {
  const { content } = await client.callTool('roll_dice', { sides: 4 });
  assert.match(content[0].text, /^Ada rolled [1-4]$/);
});

test('roll_dice refuses a die with one side', async () => {
  const { isError } = await client.callTool('roll_dice', { sides: 1 });
  assert.equal(isError, true);
});
