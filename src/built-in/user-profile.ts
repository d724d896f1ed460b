// §2.7: user://profile.
import { defineResource, requireUser } from 'postern/define';

export const userProfile = defineResource({
  uri: 'user://profile',
  name: 'User Profile',
  description: 'Claims of the logged-in user: sub and, where present, email, name and groups.',
  mimeType: 'application/json',
  read(context) {
    // Named one by one: the user context also holds the token.
    const { sub, email, name, groups } = requireUser(context);
    return { text: JSON.stringify({ sub, email, name, groups }) };
  },
});
