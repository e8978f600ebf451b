/**
 * The keys of the advisory locks, which serialize steps of nodes that start together. Advisory locks are shared by
 * everything in a database, so these are in one place, and no two are alike.
 */
export const ADVISORY_LOCKS = {
  migration: 7_235_512_094n,
  queueCreation: 7_235_512_095n,
  nodeRegistration: 7_235_512_096n,
};
