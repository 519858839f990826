// Package deploy has no code: its folder holds what docker-compose.yml and the Dockerfile at the root are made of, and tests that
// hold both against the programs, since most machines that run the tests have no container engine.
package deploy
