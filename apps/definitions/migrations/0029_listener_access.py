from django.db import migrations, models


class Migration(migrations.Migration):

    dependencies = [
        ('definitions', '0028_countries'),
    ]

    operations = [
        migrations.AddField(
            model_name='listener',
            name='access',
            field=models.JSONField(null=True),
        ),
    ]
