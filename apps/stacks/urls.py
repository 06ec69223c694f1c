"""PUSH to clouds: where Terraform finds the state of a stack."""

from django.urls import path

from apps.stacks import door

urlpatterns = [
    path("state/<int:stack_id>", door.state_of_stack, name="state"),
    path("state/<int:stack_id>/alive", door.alive, name="state-alive"),
]
